"""What ends the kernel tests before a kernel was tested: something is missing on this machine."""


class CannotTestError(Exception):
    """`facts` says what is missing, `hint` what to do about it."""

    def __init__(self, facts: str, hint: str = "") -> None:
        super().__init__(facts)
        self.facts, self.hint = facts, hint
