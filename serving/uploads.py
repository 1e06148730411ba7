"""The multipart body of POST /v1/inspect, checked field by field. Nothing here touches the disk by name."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import ValidationError
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from serving.bodies import faults
from serving.errors import FieldError, MultipartError, NotMultipartError
from serving.schemas import InspectOptions

FILE_FIELDS = ("image", "reference")
TEXT_FIELDS = ("serial", "recipe", "options")
MAX_TEXT_BYTES = 64 * 1024
MAX_LABEL_CHARS = 200
MAX_KEY_CHARS = 255
_EXAMPLE = "curl -F image=@board.png -F reference=@golden.png http://.../v1/inspect"


@dataclass(frozen=True)
class Upload:
    """One valid request; the pictures are not decoded yet."""

    image: bytes
    reference: bytes | None
    serial: str | None
    recipe: str | None
    options: InspectOptions
    idempotency_key: str | None

    def digest(self, actor: str | None) -> str:
        """SHA-256 over all that was asked and who asked, so that an idempotency key means one request."""
        parts = [
            hashlib.sha256(self.image).hexdigest(),
            None if self.reference is None else hashlib.sha256(self.reference).hexdigest(),
            self.serial,
            self.recipe,
            self.options.model_dump(mode="json"),
            *([] if actor is None else [actor]),
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@asynccontextmanager
async def open_form(
    request: Request, *, max_files: int = 8, example: str = _EXAMPLE
) -> AsyncIterator[FormData]:
    """The parts of a multipart body; large ones wait in unnamed temporary files until this is left.

    Args:
        example: a request that would do, the hint of an error.

    Raises:
        NotMultipartError, MultipartError: with what was wrong and what is wanted.
    """
    content_type = request.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() != "multipart/form-data":
        raise NotMultipartError(
            f"the content type is {content_type or '(none)'!r}, wanted multipart/form-data", hint=example
        )
    try:
        # A few more parts than there are fields, so that a wrong one is named instead of counted.
        form = await request.form(max_files=max_files, max_fields=16, max_part_size=MAX_TEXT_BYTES)
    except HTTPException as error:
        raise MultipartError(f"the multipart body cannot be read: {error.detail}", hint=example) from error
    try:
        yield form
    finally:
        await form.close()


async def read_upload(form: FormData, headers: Headers) -> Upload:
    """Check every field and the Idempotency-Key, and read the pictures into memory.

    Raises:
        FieldError: naming the field.
    """
    key = _read_key(headers)
    check_parts(form, files=FILE_FIELDS, texts=TEXT_FIELDS)
    image = await _read_file(form, "image")
    if image is None:
        raise FieldError("image: missing", hint=_EXAMPLE)
    return Upload(
        image=image,
        reference=await _read_file(form, "reference"),
        serial=_read_label(form, "serial"),
        recipe=None if (recipe := _read_label(form, "recipe")) is None else check_recipe_name(recipe),
        options=_read_options(form),
        idempotency_key=key,
    )


def check_parts(
    form: FormData, *, files: tuple[str, ...], texts: tuple[str, ...], repeated: tuple[str, ...] = ()
) -> None:
    """Hold the parts to the fields that a body may have. Raises FieldError.

    repeated: fields that may come more than once.
    """
    for name, value in form.multi_items():
        if name not in files + texts:
            known = ", ".join(files + texts)
            raise FieldError(f"{name[:80]!r} is not a field", hint=f"the fields are {known}")
        if name not in repeated and len(form.getlist(name)) > 1:
            raise FieldError(f"{name}: sent {len(form.getlist(name))} times, wanted once")
        if (name in files) != isinstance(value, UploadFile):
            wanted = "a file part, with a filename" if name in files else "a text part"
            raise FieldError(f"{name}: wanted {wanted}", hint=_EXAMPLE)


async def _read_file(form: FormData, name: str) -> bytes | None:
    file = form.get(name)
    return await file.read() if isinstance(file, UploadFile) else None


def _read_label(form: FormData, name: str) -> str | None:
    value = form.get(name)
    if not isinstance(value, str) or not value.strip():
        return None
    return check_label(name, value.strip())


def check_label(name: str, value: str) -> str:
    """A short printable text, as serials and recipe names are. Raises FieldError."""
    if len(value) > MAX_LABEL_CHARS:
        raise FieldError(f"{name}: {len(value)} characters, wanted at most {MAX_LABEL_CHARS}")
    if not value.isprintable():
        raise FieldError(f"{name}: holds characters that cannot be printed")
    return value


def check_recipe_name(value: str) -> str:
    """A recipe's name as it is kept: composed characters (NFC), fit for a path. Raises FieldError."""
    name = unicodedata.normalize("NFC", check_label("recipe", value))
    if name != name.strip() or set(name) & set("/\\?#%\ufffd") or name.strip(".") == "":
        raise FieldError(
            f"recipe: {name!r} cannot be a name",
            hint="letters, digits, spaces, - and _ will do; not / \\ ? # %, and not only dots",
        )
    return name


def _read_options(form: FormData) -> InspectOptions:
    text = form.get("options")
    if not isinstance(text, str) or not text.strip():
        return InspectOptions()
    try:
        return InspectOptions.model_validate_json(text)
    except ValidationError as error:
        raise FieldError(
            f"options: {'; '.join(faults(error))[:500]}",
            hint='JSON such as {"include": ["overlay"], "min_score": 0.3}',
        ) from error


def _read_key(headers: Headers) -> str | None:
    key = headers.get("idempotency-key")
    if key is None:
        return None
    if not 1 <= len(key) <= MAX_KEY_CHARS or not key.isascii() or not key.isprintable():
        raise FieldError(f"Idempotency-Key: wanted 1 to {MAX_KEY_CHARS} printable ASCII characters")
    return key
