"""A font of 3 x 5 points, capitals only, for the words in a PNG: an octal digit is a row of three
points, from the top.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

# A character and its five rows.
_DRAWN: Final = (
    "A=25755 B=65656 C=34443 D=65556 E=74647 F=74644 G=34553 H=55755 I=72227 J=11152 K=55655"
    " L=44447 M=57755 N=65555 O=25552 P=65644 Q=25573 R=65655 S=34216 T=72222 U=55557 V=55552"
    " W=55775 X=55255 Y=55222 Z=71247 0=75557 1=26227 2=61247 3=61216 4=55711 5=74616 6=34757"
    " 7=71222 8=75757 9=75716 :=02020 .=00002 ,=00024 -=00700 _=00007 /=11244 (=12221 )=42224"
    " [=64446 ]=31113 +=02720 %=51245 ==07070 '=22000 \"=55000 ?=61202 #=57575 <=12421 >=42124"
    " @=75747 *=05250 !=22202 ;=02024 |=22222 ~=03600 \\=44211 {=32623 }=62326"
)
_GLYPHS: Final = {glyph[0]: glyph[2:] for glyph in _DRAWN.split()}
_BLANK: Final = "00000"
_HEIGHT: Final = 5
_ADVANCE: Final = 4
SCALE: Final = 2
CHARACTER: Final = _ADVANCE * SCALE
LINE: Final = _HEIGHT * SCALE + 6


def text_points(text: str) -> NDArray[np.bool_]:
    """A text as points, height by width; a character that the font lacks is a question mark."""
    points = np.zeros((_HEIGHT, _ADVANCE * len(text)), dtype=bool)
    for place, character in enumerate(text.upper().replace("…", "~")):
        glyph = _BLANK if character == " " else _GLYPHS.get(character, _GLYPHS["?"])
        for row, digit in enumerate(glyph):
            for column in range(3):
                points[row, _ADVANCE * place + column] = int(digit) >> (2 - column) & 1
    return points.repeat(SCALE, axis=0).repeat(SCALE, axis=1)
