"""The base of all results: plain values, versioned JSON, a table, a figure and a page."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

from augury._base.errors import AuguryError
from augury.results.plain import from_plain, to_plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Result(ABC):
    """A frozen dataclass of plain values that can become a table, JSON, a figure or a page.

    A subclass is a frozen dataclass that names itself (`name`), counts the changes of its JSON
    (`schema`) and says how it becomes a table and a figure, and which module of `augury.report`
    renders its page; JSON comes for free.
    A field with ``metadata={"json": False}`` stays out of the JSON.
    """

    name: ClassVar[str]
    """What a file of this result is called, such as ``"ranking"``."""
    schema: ClassVar[int] = 1
    """The version of the JSON; raised whenever its fields change."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as in the JSON."""
        return {"augury": self.name, "schema": self.schema, **to_plain(self)}

    def to_json(self) -> str:
        """Return the result as JSON, for `from_json`."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote.

        Raises
        ------
        AuguryError
            If the text is not the JSON of such a result, or of another version of it.
        """
        try:
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError):  # also what is not text, or not UTF-8
            raise AuguryError(
                f"expected the JSON of augury's {cls.name}, got text that is not JSON; pass the "
                "text of a file, not its path"
            ) from None
        found = data.pop("augury", None) if isinstance(data, dict) else None
        if found != cls.name:
            got = f"a file of kind {found!r}" if isinstance(found, str) else "other JSON"
            raise AuguryError(f"expected the JSON of augury's {cls.name}, got {got}")
        schema = data.pop("schema", None)
        if schema != cls.schema:
            raise AuguryError(
                f"the {cls.name} has schema {schema!r} and this version of augury reads schema "
                f"{cls.schema}; use the version that wrote it, or make the {cls.name} again"
            )
        return from_plain(cls, data, cls.name)

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table."""

    @abstractmethod
    def plot(self) -> Figure:
        """Draw a matplotlib figure."""

    @abstractmethod
    def _report(self) -> Any:
        """Return what renders this result: a module with `to_html` and `to_markdown`.

        It may also have `to_fragment`, for notebooks.
        """

    def to_html(self) -> str:
        """Return the report: one self-contained page."""
        return self._report().to_html(self)

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        return self._report().to_markdown(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the fragment of the report or, without one, the table."""
        fragment = getattr(self._report(), "to_fragment", None)
        if fragment is not None:
            return fragment(self)
        table: Any = self.to_frame()  # pandas' types do not have the method
        return table._repr_html_()
