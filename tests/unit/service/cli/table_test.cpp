// SPDX-License-Identifier: Apache-2.0
#include "service/cli/table.hpp"

#include <gmock/gmock.h>

#include "service/cli/progress.hpp"
#include "service/cli/show.hpp"
#include "tests/unit/service/cli/answers.hpp"

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
    options.format = Format::yaml;
    EXPECT_EQ(rendered(two(), "{\"b\": 1, \"a\": 2}", options), "b: 1\na: 2\n");
}

TEST(Table, HasTheColumnsThatAreNamed) {
    EXPECT_EQ(as_table(with_columns(two(), {"long_column", "Name"}).value(), Headers::shown),
              "LONG COLUMN  NAME\n1            a\n             bcdefg\n");
    EXPECT_EQ(as_csv(with_columns(two(), {"LONG COLUMN"}).value(), Headers::shown),
              "long_column\r\n1\r\n\"\"\r\n");
    EXPECT_EQ(as_names(with_columns(two(), {}).value()), as_names(two()));
    for (std::string const unknown : {"", "long", "name "}) {
        auto const refused = with_columns(two(), {"name", unknown});
        ASSERT_FALSE(refused) << unknown;
        EXPECT_EQ(exit_code(refused.error().problem), 2);
        EXPECT_EQ(refused.error().detail, "there is no column '" + unknown + "'");
        EXPECT_EQ(refused.error().remedy, "choose among name, long_column");
    }
}

TEST(Cell, SaysWhatIsNotKnown) {
    EXPECT_EQ(cell(std::optional<std::uint32_t>{}), "-");
    EXPECT_EQ(cell(std::string()), "-");
    EXPECT_EQ(cell(std::vector<std::string>{}), "-");
    EXPECT_EQ(cell(true), "yes");
    EXPECT_EQ(cell(std::optional(false)), "no");
    EXPECT_EQ(cell(std::vector<int>{1, 2}), "1,2");
    EXPECT_EQ(cell(PfMode::enforce), "enforce");
    EXPECT_EQ(cell(PciAddress{0, 1, 0, 0}), "0000:01:00.0");
    EXPECT_EQ(cell(std::optional<Vlan>(), &Vlan::id), "-");
    EXPECT_EQ(cell(std::optional(Vlan{7}), &Vlan::id), "7");
    EXPECT_EQ(cell("\x1b[31mred"), "\\x1b[31mred") << "a name must not steer the terminal";
}

VfView vf(std::uint16_t index, std::string const& pci, VfSpec const& settings) {
    VfView view;
    view.pf = PciAddress::parse("0000:01:00.0").value();
    view.state = VfStatus::free;
    view.vf.index = index;
    view.vf.pci = PciAddress::parse(pci).value();
    view.vf.settings = settings;
    return view;
}

TEST(Show, VfsOfPfs) {
    auto pf = test::pf("0000:01:00.0", "ens1");
    VfSpec settings;
    settings.mac = MacAddress::parse("02:00:00:00:00:01").value();
    settings.trust = false;
    settings.vlan = Vlan{100, 3};
    settings.min_tx_rate_mbps = 0;
    settings.max_tx_rate_mbps = 500;
    VfSpec without_limit;
    without_limit.max_tx_rate_mbps = 0;
    pf.vfs = {vf(0, "0000:01:10.0", settings), vf(1, "0000:01:10.2", without_limit),
              vf(2, "0000:01:10.4", {})};
    pf.vfs[1].vf.driver = pf.vfs[2].vf.driver = "vfio-pci";
    pf.vfs[1].attachment = "aa";
    pf.vfs[1].vm = "db1";
    pf.vfs[1].state = VfStatus::attached;
    pf.vfs[2].state = VfStatus::quarantined;
    EXPECT_EQ(as_table(vf_table(pf.vfs, {pf}), Headers::shown),
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
    EXPECT_EQ(plan_page({{{"create 7 VFs on 0000:01:00.0"}},
                         {"VFs 0-3 of ens1 are recreated"},
                         {"MAC 02:… was chosen"}}),
              "would:\n"
              "  1. create 7 VFs on 0000:01:00.0\n"
              "affects:\n"
              "  - VFs 0-3 of ens1 are recreated\n"
              "notes:\n"
              "  - MAC 02:… was chosen\n");
    EXPECT_EQ(plan_page({}), "nothing to do\n");
}

Verification passed(std::map<std::string, double> figures) {
    Verification verification;
    verification.verdict = Verdict::pass;
    verification.tests = {
        {"rdma_write", Verdict::pass, Judge::host, 1048576, 0, std::move(figures), "", ""}};
    return verification;
}

TEST(Show, TestsWithTheirFigures) {
    auto const page =
        as_table(test_table(passed({{"bandwidth_mbps", 941.25}, {"p50_us", 18}})), Headers::hidden);
    EXPECT_EQ(page, "rdma_write  pass  host  1048576  0  bandwidth_mbps=941.25 p50_us=18  -\n");
}

TEST(Show, APageHasALineForEachTestAndEveryFigureOnRequest) {
    auto const verification = passed({{"bandwidth_mbps", 941.25}, {"seconds", 0.01}});
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
    auto verification = passed({});
    verification.warnings = {{"write_latency", "slower than it was", "top"}};
    EXPECT_THAT(verification_page(verification, {}),
                testing::HasSubstr("warning: slower than it was\n  remedy: top\n"));
}

Operation running(StepState first, StepState second) {
    return test::operation(OperationState::running, {{"make VFs", first}, {"bind VF", second}});
}

TEST(Progress, StatusLineFitsTheTerminal) {
    using enum StepState;
    EXPECT_EQ(status_line(running(done, intended), 80), "[1/2] bind VF");
    EXPECT_EQ(status_line(running(planned, planned), 80), "[0/2] running");
    EXPECT_EQ(status_line(running(done, intended), 9), "[1/2] bin");
    auto const wide = test::operation(OperationState::running, {{"üüü", intended}});
    EXPECT_EQ(status_line(wide, 9), "[0/1] ü") << "no half character";
}

}  // namespace
}  // namespace vfmgr
