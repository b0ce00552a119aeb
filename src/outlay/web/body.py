"""The body of a question: what may stand in it. What its words mean is read where they are answered."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Word = Annotated[str, Field(max_length=100)]
Value = Annotated[str, Field(max_length=2_000)] | bool | int | float


class File(BaseModel):
    """One file of a run: what it is called, and its text. It is read, never run, and never stored."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(max_length=200, examples=["train.sh"])]
    text: str


class Side(BaseModel):
    """One question: the words of a command line."""

    model_config = ConfigDict(extra="forbid")
    words: Annotated[
        dict[Word, Value],
        Field(
            max_length=200,
            description="flags without dashes, and what would be typed after them; a switch is true",
            examples=[{"model": "llama-3.1-70b", "on": "64xh100-sxm", "tp": "8", "pp": "4", "seq": "8192"}],
        ),
    ] = {}
    config: Annotated[
        dict[str, Any] | None, Field(description="a config.json, in place of the word `model`; or a printed bill")
    ] = None
    file: File | None = None
    files: Annotated[list[File] | None, Field(max_length=32, description="several files of one run, to check")] = None


class Question(Side):
    """One question, or two to compare."""

    other: Annotated[Side | None, Field(description="the second side of a comparison")] = None

    def asked(self, command: str) -> dict[str, Any]:
        """What a worker is asked."""
        return {"command": command} | self.model_dump(exclude_unset=True)
