"""Disassembled text by hand, as nvdisasm prints it."""

HEAD = '\t.section\t.text.k,"ax",@progbits\n'


def sass(*lines, stall=1):
    """One instruction for each text; a text that ends in a colon is a label, and one that begins with a
    number and a bar has that PTX line: "12| FADD R0, R1, R2"."""
    rows, address = [HEAD], 0
    for text in lines:
        if text.endswith(":"):
            rows.append(f"{text}\n")
            continue
        line, bar, rest = text.partition("| ")
        if bar:
            rows.append(f'\t//## File ".nv_debug_ptx_txt", line {line}\n')
        control = (stall | 1 << 4 | 7 << 5 | 7 << 8) << 41
        rows.append(f"        /*{address:04x}*/    {rest if bar else text} ;   /* 0x{0:016x} */\n")
        rows.append(f"                                /* 0x{control:016x} */\n")
        address += 16
    return "".join(rows)
