"""Known answers of the hash that random numbers are made of, for Python, C and devices: (seed, offset) -> words."""

import turnout

WORDS = {
    (0, 0): (0x871B275E2C983E04, 0x3AF8798E18F8977E, 0x643BFD7F4C328A47, 0x97A0500561158821),
    (7, 3): (0x0DDF52A553DA0925, 0xF167F370BEA624B3, 0xE74F39087B36AF1C, 0x99862D9CA40A6E51),
}
_SPAN = (1 << 32) - 5  # no power of two: a remainder depends on all 63 bits


def check_words(device: str) -> None:
    """Integers are remainders of 63 bits of words; uniform numbers, which other kernels draw, are the last 24 bits."""
    for (seed, offset), words in WORDS.items():
        generator = turnout.Generator(device).manual_seed(seed)
        turnout.rand(offset, device=device, generator=generator)
        drawn = turnout.randint(0, _SPAN, (len(words),), device=device, generator=generator)
        assert drawn.tolist() == [word % (1 << 63) % _SPAN for word in words]
        with turnout.random.fork_rng():
            turnout.manual_seed(seed)
            turnout.rand(offset, device=device)
            assert turnout.rand(len(words), device=device).tolist() == [word % (1 << 24) * 2.0**-24 for word in words]
