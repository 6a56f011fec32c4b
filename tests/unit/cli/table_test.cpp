// SPDX-License-Identifier: Apache-2.0
#include "service/cli/table.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "service/cli/progress.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

Table two() {
    return {{"NAME", "LONG COLUMN"}, {{"a", "1"}, {"bcdefg", ""}}};
}

TEST(Table, ColumnsAreAligned) {
    EXPECT_EQ(as_table(two(), Headers::shown),
              "NAME    LONG COLUMN\n"
              "a       1\n"
              "bcdefg\n");
    EXPECT_EQ(as_table(two(), Headers::hidden), "a       1\nbcdefg\n");
    EXPECT_EQ(as_table({{"A", "B"}, {}}, Headers::shown), "A  B\n");
    // Two octets, one column.
    EXPECT_EQ(as_table({{"A", "B"}, {{"üü", "1"}, {"xx", "2"}}}, Headers::hidden),
              "üü  1\nxx  2\n");
}

TEST(Table, CsvIsRfc4180) {
    Table const table{{"NAME", "LONG COLUMN"}, {{"a,b", "say \"x\""}, {"-", "c"}}};
    EXPECT_EQ(as_csv(table, Headers::shown),
              "name,long_column\r\n\"a,b\",\"say \"\"x\"\"\"\r\n,c\r\n");
    EXPECT_EQ(as_csv(table, Headers::hidden), "\"a,b\",\"say \"\"x\"\"\"\r\n,c\r\n");
    EXPECT_EQ(as_names(two()), "a\nbcdefg\n");
}

TEST(Table, JsonIsTheBodyItself) {
    Options options;
    options.format = Format::json;
    EXPECT_EQ(rendered(two(), "{\"b\": 1, \"a\": 2}\n", options), "{\"b\": 1, \"a\": 2}\n");
    EXPECT_EQ(rendered(two(), "[]", options), "[]\n");
}

TEST(Cell, SaysWhatIsNotKnown) {
    auto const document = nlohmann::json::parse(
        R"({"a": null, "b": true, "c": {"d": [1, "x"]}, "e": "", "f": "\u001b[31mred", "g": []})");
    EXPECT_EQ(cell(document, "/a"), "-");
    EXPECT_EQ(cell(document, "/none"), "-");
    EXPECT_EQ(cell(document, "/c/none/deeper"), "-");
    EXPECT_EQ(cell(document, "/b"), "yes");
    EXPECT_EQ(cell(document, "/c/d"), "1,x");
    EXPECT_EQ(cell(document, "/e"), "-");
    EXPECT_EQ(cell(document, "/g"), "-");
    EXPECT_EQ(cell(document, "/f"), "\\x1b[31mred") << "a name must not steer the terminal";
}

TEST(Show, VfsOfPfs) {
    auto const pfs = nlohmann::json::parse(R"([{"info": {"pci": "0000:01:00.0", "ifname": "ens1"},
        "vfs": [{"index": 0, "pci": "0000:01:10.0", "driver": null, "attachment": null, "vm": null,
                 "quarantine": null, "settings": {"mac": "02:00:00:00:00:01", "trust": false,
                 "vlan": {"id": 100, "qos": 3}, "min_tx_rate_mbps": 0, "max_tx_rate_mbps": 500}},
                {"index": 1, "pci": "0000:01:10.2", "driver": "vfio-pci", "attachment": "aa",
                 "vm": "db1", "quarantine": null, "settings": {"max_tx_rate_mbps": 0}},
                {"index": 2, "pci": "0000:01:10.4", "driver": "vfio-pci", "attachment": null,
                 "vm": null, "quarantine": {"reason": "x"}, "settings": {}}]}])");
    EXPECT_EQ(as_table(vf_table(pfs), Headers::shown),
              "VF              PF            IFNAME  INDEX  PCI           DRIVER    MAC"
              "                VLAN   SPOOFCHK  TRUST  LINK  RATE  VM   STATE\n"
              "0000:01:00.0/0  0000:01:00.0  ens1    0      0000:01:10.0  -         "
              "02:00:00:00:00:01  100:3  -         no     -     500   -    free\n"
              "0000:01:00.0/1  0000:01:00.0  ens1    1      0000:01:10.2  vfio-pci  -"
              "                  -      -         -      -     -     db1  attached\n"
              "0000:01:00.0/2  0000:01:00.0  ens1    2      0000:01:10.4  vfio-pci  -"
              "                  -      -         -      -     -     -    quarantined\n");
}

TEST(Show, PlanNamesStepsAndWhomTheyAffect) {
    EXPECT_EQ(plan_page(nlohmann::json::parse(R"({"plan": {"steps": [
        {"step": "set_num_vfs", "sentence": "create 7 VFs on 0000:01:00.0"}],
        "blast_radius": ["VFs 0-3 of ens1 are recreated"], "notes": ["MAC 02:… was chosen"]}})")),
              "would:\n"
              "  1. create 7 VFs on 0000:01:00.0\n"
              "affects:\n"
              "  - VFs 0-3 of ens1 are recreated\n"
              "notes:\n"
              "  - MAC 02:… was chosen\n");
    EXPECT_EQ(plan_page(nlohmann::json::parse(R"({"plan": {"steps": []}})")), "nothing to do\n");
}

TEST(Show, TestsWithTheirFigures) {
    auto const page = as_table(test_table(nlohmann::json::parse(R"({"tests": [{"name": "rdma_write",
        "verdict": "pass", "by": "host", "bytes_checked": 1048576, "mismatches": 0,
        "figures": {"bandwidth_mbps": 941.25, "p50_us": 18}, "detail": ""}]})")),
                               Headers::hidden);
    EXPECT_EQ(page, "rdma_write  pass  host  1048576  0  bandwidth_mbps=941.25 p50_us=18  -\n");
}

TEST(Show, APageHasALineForEachTestAndEveryFigureOnRequest) {
    auto const verification = nlohmann::json::parse(R"({"verdict": "pass", "tests": [
        {"name": "rdma_write", "verdict": "pass", "by": "host", "bytes_checked": 1048576,
         "mismatches": 0, "figures": {"bandwidth_mbps": 941.25, "seconds": 0.01}, "detail": "",
         "remedy": "", "of a newer vfmgrd": true}]})");
    Options options;
    EXPECT_THAT(verification_page(verification, options),
                testing::EndsWith("\ntests:\n"
                                  "  rdma_write  pass  941 Mbit/s, 1048576 bytes checked\n"));
    options.verbose = true;
    EXPECT_THAT(verification_page(verification, options),
                testing::EndsWith("1048576 bytes checked\n"
                                  "    by host, 1048576 bytes checked, 0 wrong\n"
                                  "    bandwidth_mbps 941.25, seconds 0.01\n"));
}

TEST(Show, WarningsWithTheirRemedies) {
    Options const options;
    auto const page = verification_page(nlohmann::json::parse(R"({"verdict": "pass", "warnings": [
        {"test": "write_latency", "detail": "slower than it was", "remedy": "top"}]})"),
                                        options);
    EXPECT_THAT(page, testing::HasSubstr("warning: slower than it was\n  remedy: top\n"));
}

nlohmann::json operation(char const* first, char const* second) {
    return {{"state", "running"},
            {"steps",
             {{{"sentence", "make VFs"}, {"state", first}},
              {{"sentence", "bind VF"}, {"state", second}}}}};
}

TEST(Progress, EachChangeOnce) {
    StepChanges changes;
    using Lines = std::vector<std::string>;
    EXPECT_EQ(changes.since_last(operation("planned", "planned")), Lines{});
    EXPECT_EQ(changes.since_last(operation("intended", "planned")), Lines{"doing   make VFs"});
    EXPECT_EQ(changes.since_last(operation("intended", "planned")), Lines{});
    EXPECT_EQ(changes.since_last(operation("done", "failed")),
              (Lines{"done    make VFs", "failed  bind VF"}));
    EXPECT_EQ(changes.since_last(operation("undone", "undone")),
              (Lines{"undone  make VFs", "undone  bind VF"}));
    EXPECT_EQ(changes.since_last(nlohmann::json::object()), Lines{});
}

TEST(Progress, ARefusalThatWasAllowedIsToldOnce) {
    StepChanges changes;
    auto shown = operation("done", "planned");
    shown["steps"][0]["remarks"] = {"igb refused link_state enable for VF 0 of enp1s0"};
    using Lines = std::vector<std::string>;
    EXPECT_EQ(
        changes.since_last(shown),
        (Lines{"done    make VFs", "        igb refused link_state enable for VF 0 of enp1s0"}));
    EXPECT_EQ(changes.since_last(shown), Lines{});
    shown["steps"][0]["state"] = "undone";
    EXPECT_EQ(changes.since_last(shown), Lines{"undone  make VFs"});
}

TEST(Progress, StatusLineFitsTheTerminal) {
    EXPECT_EQ(status_line(operation("done", "intended"), 80), "[1/2] bind VF");
    EXPECT_EQ(status_line(operation("planned", "planned"), 80), "[0/2] running");
    EXPECT_EQ(status_line(operation("done", "intended"), 9), "[1/2] bin");
    nlohmann::json const wide{{"state", "üüü"}};
    EXPECT_EQ(status_line(wide, 9), "[0/0] ü") << "no half character";
}

}  // namespace
}  // namespace vfmgr
