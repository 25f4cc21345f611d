"""The one table of opcodes of SASS: which pipe executes an instruction, and how others learn that it is done.

What an opcode needs is the same from sm_75 to sm_90. How many cycles it takes is not here: of instructions of
fixed latency ptxas says it in the code, of the others a profile of the GPU does.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Pipe(Enum):
    """What executes. FMA, ALU, HALF, DOUBLE, SPECIAL (MUFU, conversions, bit counts), TENSOR and UNIFORM are
    in each quarter of an SM. The memory pipes share a queue and the SM's data path: SHARED, GLOBAL (also
    generic and local addresses), CONSTANT and EXCHANGE (between lanes). UNITS: TMA, mbarriers and
    warpgroup products, told by a warp. CONTROL: branches and barriers."""

    FMA = "fma"
    FMA_HEAVY = "fma heavy"
    ALU = "alu"
    HALF = "half"
    DOUBLE = "double"
    SPECIAL = "special"
    TENSOR = "tensor"
    WARPGROUP = "warpgroup"
    UNIFORM = "uniform"
    SHARED = "shared"
    GLOBAL = "global"
    CONSTANT = "constant"
    EXCHANGE = "exchange"
    UNITS = "units"
    CONTROL = "control"


class Done(Enum):
    """How later instructions know that a result is there. FIXED: after the stall cycles that ptxas wrote.
    SCOREBOARD: by a scoreboard that the instruction names. GROUP: by a counter of groups, as of cp.async and
    wgmma."""

    FIXED = "fixed"
    SCOREBOARD = "scoreboard"
    GROUP = "group"


class Kind(NamedTuple):
    """What an opcode is. known: False for one that no table has."""

    pipe: Pipe
    done: Done
    known: bool = True


TABLE: dict[tuple[Pipe, Done], str] = {
    (Pipe.FMA, Done.FIXED): "FFMA FFMA32I FADD FADD32I FMUL FMUL32I FFMA2 FADD2 FMUL2",
    (Pipe.FMA_HEAVY, Done.FIXED): "IMAD IMUL IDP IDP4A",
    (Pipe.ALU, Done.FIXED): (
        "BMSK CSET CSETP FMNMX FSEL FSET FSETP FSWZADD HMNMX2 I2FP I2IP F2FP IABS IADD IADD3 IADD32I IMNMX "
        "ISETP LEA LOP LOP3 LOP32I MOV MOV32I P2R PLOP3 PRMT R2P SEL SGXT SHF SHL SHR VABSDIFF VABSDIFF4 "
        "VIADD VIADDMNMX VIMNMX VIMNMX3 VHMNMX VOTE ISCADD"
    ),
    (Pipe.HALF, Done.FIXED): "HADD2 HADD2_32I HFMA2 HFMA2_32I HMUL2 HMUL2_32I HSET2 HSETP2",
    (Pipe.DOUBLE, Done.SCOREBOARD): "DADD DFMA DMUL DSETP DMNMX",
    (Pipe.SPECIAL, Done.SCOREBOARD): (
        "MUFU F2F F2I F2IP FRND I2F POPC FLO BREV S2R S2UR REDUX FCHK GETLMEMBASE QSPC TTUCCTL MATCH"
    ),
    (Pipe.TENSOR, Done.FIXED): "HMMA IMMA BMMA QMMA OMMA",
    (Pipe.TENSOR, Done.SCOREBOARD): "DMMA",
    (Pipe.WARPGROUP, Done.GROUP): "HGMMA IGMMA BGMMA QGMMA",
    (Pipe.UNIFORM, Done.FIXED): (
        "R2UR UBMSK UBREV UCLEA UFLO UIADD3 UIMAD UIMNMX UISETP ULDC ULEA ULOP ULOP3 ULOP32I UMOV UP2UR "
        "UPLOP3 UPOPC UPRMT UPSETP UR2UP USEL USGXT USHF USHL USHR UVIADD UVIMNMX VOTEU"
    ),
    (Pipe.SHARED, Done.SCOREBOARD): "LDS LDSM STS STSM ATOMS",
    (Pipe.GLOBAL, Done.SCOREBOARD): (
        "ATOM ATOMG CCTL CCTLL CCTLT LD LDG LDL MEMBAR RED REDG ST STG STL SULD SUST SURED SUATOM TEX "
        "TLD TLD4 TMML TXD TXQ ERRBAR CGAERRBAR LDGMC"
    ),
    (Pipe.GLOBAL, Done.GROUP): "LDGSTS",
    (Pipe.CONSTANT, Done.SCOREBOARD): "LDC",
    (Pipe.EXCHANGE, Done.SCOREBOARD): "SHFL MOVM",
    (Pipe.UNITS, Done.SCOREBOARD): (
        "ARRIVES FENCE SYNCS UBLKCP UBLKPF UBLKRED UTMALDG UTMAPF UTMAREDG UTMASTG UTMACCTL UTMACMDFLUSH "
        "LDGDEPBAR STAS USETMAXREG"
    ),
    (Pipe.CONTROL, Done.FIXED): (
        "ACQBULK ACQSHMINIT B2R BAR BMOV BPT BRA BREAK BRX BRXU BSSY BSYNC CALL CONT CS2R DEPBAR ELECT "
        "ENDCOLLECTIVE EXIT IDE JMP JMX JMXU KILL LEPC NANOSLEEP NOP PREEXIT PMTRIG RET RPCMOV RTT SETCTAID "
        "SETLMEMBASE SSY SYNC UCGABAR_ARV UCGABAR_WAIT WARPGROUP WARPGROUPSET WARPSYNC YIELD UBMOV"
    ),
}
"""Pipe and how results are known -> opcodes without their modifiers."""

KINDS = {opcode: Kind(*key) for key, opcodes in TABLE.items() for opcode in opcodes.split()}

UNKNOWN = Kind(Pipe.SPECIAL, Done.SCOREBOARD, known=False)
"""In place of an opcode that no table has: a slow pipe, and a result that is waited for."""


def kind_of(opcode: str) -> Kind:
    """What executes an opcode such as "LDS.128", by its name before the first dot."""
    return KINDS.get(opcode.partition(".")[0], UNKNOWN)
