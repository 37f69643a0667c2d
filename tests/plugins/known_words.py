"""Known answers of the hash that random numbers are made of, for Python, C and devices: (seed, offset) -> words."""

import turnout

WORDS = {
    (0, 0): (0x871B275E2C983E04, 0x3AF8798E18F8977E, 0x643BFD7F4C328A47, 0x97A0500561158821),
    (7, 3): (0x0DDF52A553DA0925, 0xF167F370BEA624B3, 0xE74F39087B36AF1C, 0x99862D9CA40A6E51),
}


def check_words(device: str) -> None:
    """Integers of a power of two are the last bits of words."""
    for (seed, offset), words in WORDS.items():
        generator = turnout.Generator(device).manual_seed(seed)
        turnout.rand(offset, device=device, generator=generator)
        drawn = turnout.randint(0, 1 << 32, (len(words),), device=device, generator=generator)
        assert drawn.tolist() == [word & 0xFFFFFFFF for word in words]
