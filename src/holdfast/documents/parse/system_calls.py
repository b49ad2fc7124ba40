"""The numbers of the system calls that parsers do not need, by architecture."""

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls that are refused, that appear not to exist, and that are allowed only for the process itself.

    `unknown` is for calls for which the C library has a fallback.
    """

    architecture: int
    refused: tuple[int, ...]
    unknown: tuple[int, ...]
    own: tuple[int, ...]


# These have the same number everywhere: pidfd_send_signal, io_uring_setup, _enter and _register, open_tree,
# move_mount, fsopen, fsconfig, fsmount, fspick, pidfd_open, pidfd_getfd, process_madvise, mount_setattr,
# process_mrelease.
_NEW = (424, 425, 426, 427, 428, 429, 430, 431, 432, 433, 434, 438, 440, 442, 448)
_CLONE_3 = 435

_X86_64 = (
    *(
        41,
        42,
        43,
        44,
        46,
        49,
        50,
        53,
        288,
        307,
    ),  # socket connect accept sendto sendmsg bind listen socketpair …
    *(56, 57, 58, 59, 322),  # clone fork vfork execve execveat
    *(62, 200, 101, 310, 311, 129, 297),  # kill tkill ptrace process_vm_readv _writev rt_sigqueueinfo …
    *(29, 30, 31, 64, 65, 66, 68, 69, 70, 71, 240, 241),  # shared memory, semaphores, messages
    *(155, 161, 165, 166, 272, 308, 303, 304),  # pivot_root chroot mount umount unshare setns …_by_handle_at
    *(157, 160, 321, 298, 323, 248, 249, 250),  # prctl setrlimit bpf perf_event_open userfaultfd keys
    *(175, 313, 176, 246, 320, 169, 167, 168, 163, 170, 171),  # modules, kexec, reboot, swap, acct, names
    *(105, 106, 113, 114, 116, 117, 119, 126),  # user and group ids, capabilities
    *(
        83,
        258,
        82,
        264,
        316,
        86,
        265,
        88,
        266,
        87,
        263,
        84,
        90,
        91,
        268,
        92,
        93,
        94,
        260,
        133,
        259,
    ),  # the file system
)
_AARCH64 = (
    *(198, 203, 202, 206, 211, 200, 201, 199, 242, 269),
    *(220, 221, 281),
    *(129, 130, 117, 270, 271, 138, 240),
    *(194, 195, 196, 190, 191, 192, 193, 186, 187, 188, 189, 180, 181),
    *(41, 51, 40, 39, 97, 268, 264, 265),
    *(167, 164, 280, 241, 282, 217, 218, 219),
    *(105, 273, 106, 104, 294, 142, 224, 225, 89, 161, 162),
    *(146, 144, 145, 143, 159, 147, 149, 91),
    *(38, 276, 35, 37, 36, 34, 53, 52, 54, 55, 33),
)

OF = MappingProxyType(
    {
        "x86_64": Calls(0xC000003E, (*_X86_64, *_NEW), (_CLONE_3,), (302, 234)),  # prlimit64, tgkill
        "aarch64": Calls(0xC00000B7, (*_AARCH64, *_NEW), (_CLONE_3,), (261, 131)),
    }
)
"""By the name of the machine."""
