"""cuBLAS and cuBLASLt beside each other in tables and files, on made-up measurements."""

import made_up

from tir_schedules.bench.tables import print_results
from tir_schedules.subjects.results import load_results, save_results


def printed(capsys, results):
    print_results(results)
    return capsys.readouterr().out


def test_what_is_known_of_candidates_is_in_the_file(tmp_path):
    results = made_up.with_cublaslt(made_up.results("sgemm/naive", sizes=(64,)), {64: 1.0})
    save_results(results, tmp_path / "a.json")
    assert load_results(tmp_path / "a.json") == results


def test_the_best_rung_is_held_against_the_faster_of_the_vendors_libraries_at_each_size(capsys):
    rates = {"schedule": 60.0, "twin": 50.0, "vendor": 100.0}
    results = made_up.results(
        "sgemm/naive", sizes=(1024, 2048), change=lambda row: {**row, "rate": rates[row["form"]]}
    )
    lines = printed(capsys, made_up.with_cublaslt(results, {1024: 80.0, 2048: 120.0})).splitlines()
    cells = {line[:28].strip(): line[28:].split() for line in lines}
    assert cells["cuBLAS"] == ["100", "100"] and cells["cuBLASLt"] == ["80.0", "120"]
    assert cells["best rung / best of cuBLAS"] == ["0.60x", "0.50x"]
    assert "cuBLASLt: candidate 2 of 2 at 1024..2048" in lines
    assert "best rung / cuBLAS " in printed(capsys, results)


def test_candidates_that_were_refused_are_told(capsys):
    results = made_up.results("sgemm/naive", sizes=(1024,))
    candidate = {"refused": "C[0] is nan"}
    out = printed(capsys, made_up.with_cublaslt(results, {1024: 80.0}, chosen=0, candidates=[{}, candidate]))
    line = "\nrefused: cuBLASLt, candidate 2 of 2, on 1024x1024x1024: C[0] is nan"
    assert f"{line}\n" in out
    candidate |= {"split_k": 2, "reduction": 4}
    out = printed(capsys, made_up.with_cublaslt(results, {1024: 80.0}, chosen=0, candidates=[{}, candidate]))
    assert f"{line}; it adds parts of k in C's format\n" in out
