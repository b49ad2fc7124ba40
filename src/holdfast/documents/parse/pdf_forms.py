"""The values that somebody has filled into the form of a PDF; they are no part of a page's text."""

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import pypdfium2 as pdfium  # type: ignore[import-untyped]
from pypdfium2 import raw

from holdfast.core.text import plain

MOST_FIELDS = 2_000
_LONGEST = 64 * 1024
_PASSWORD = 1 << 13
_TEXTS = frozenset({raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX})
_MARKS = frozenset({raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON})


def rows(document: pdfium.PdfDocument, page: pdfium.PdfPage) -> tuple[str, ...]:
    """The filled fields of a page as `name: value`; none for a document without a form."""
    if document.formenv is None:
        return ()
    return tuple(_rows(document.formenv.raw, page.raw))


def _rows(form: Any, page: Any) -> Iterator[str]:
    for number in range(min(MOST_FIELDS, raw.FPDFPage_GetAnnotCount(page))):
        annotation = raw.FPDFPage_GetAnnot(page, number)
        if not annotation:
            continue
        try:
            value = _value(form, annotation)
            name = _text(raw.FPDFAnnot_GetFormFieldAlternateName, form, annotation) if value else ""
            name = name or (_text(raw.FPDFAnnot_GetFormFieldName, form, annotation) if value else "")
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
        if value:
            yield f"{name}: {value}" if name else value


def _value(form: Any, annotation: Any) -> str:
    """What a field says; nothing for a button, a signature, a password, or a box that is not ticked."""
    if raw.FPDFAnnot_GetSubtype(annotation) != raw.FPDF_ANNOT_WIDGET:
        return ""
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in _TEXTS:
        if raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD:
            return ""
        return _text(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
    if kind in _MARKS and raw.FPDFAnnot_IsChecked(form, annotation):
        return _text(raw.FPDFAnnot_GetFormFieldExportValue, form, annotation) or "yes"
    return ""


def _text(read: Callable[..., int], form: Any, annotation: Any) -> str:
    """A text of a field, on one line."""
    size = min(read(form, annotation, None, 0), _LONGEST)
    if size <= 2:
        return ""
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    read(form, annotation, buffer, size)
    return " ".join(plain(bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")).split())
