"""Every check is proven on the real thing, or its facts are recorded, with the reason."""

from holdfast.doctor import catalogue
from tests.doctor import (
    test_installation,
    test_real_applications,
    test_real_servers,
    test_real_servers_long,
)

# In these the bad state cannot be had here; facts of it are in the table of `table.py`.
RECORDED = {
    "C13": "needs Celery or kombu before 5.7; one release is installed",
    "Q2": "needs RabbitMQ 4.3 or newer; Debian has 3.10",
    "Q10": "needs RabbitMQ 4.3 or newer with Celery before 5.7",
    "H7": "needs a file system that is nearly full",
    "H8": "needs a container with a memory limit",
}
# Proven in part: what of them is recorded.
IN_PART = {
    "P1": "SQLite on a network file system, and with synchronous=OFF, which Holdfast never sets",
    "Q1": "RabbitMQ before 3.8.17, whose timeout differs, and from 4.3 on, which spares classic queues",
    "Q3": "the delivery limit of 20 that queues have by default since RabbitMQ 4.0",
    "Q12": "the disk alarm: RabbitMQ does not watch the disk of this machine",
    "G1": "celery-heimdall, which is not installed",
    "S1": "a server on another machine: servers of tests listen on loopback only",
}


def test_every_check_has_its_proof():
    """No check is only a table."""
    proven = {
        *test_real_applications.CASES,
        *test_real_applications.OTHERS,
        *test_real_servers.REDIS,
        *test_real_servers.RABBITMQ,
        *test_real_servers.DATABASES,
        *test_real_servers_long.LONG,
        *test_installation.INSTALLATION,
    }
    assert proven.isdisjoint(RECORDED)
    assert proven | RECORDED.keys() == {check.id for check in catalogue.CHECKS}
    assert IN_PART.keys() <= proven
