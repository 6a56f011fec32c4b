// SPDX-License-Identifier: Apache-2.0
#include "service/cli/top.hpp"

#include <gtest/gtest.h>

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

PciAddress const shown_pf{0, 1, 0, 0};

PfTraffic read_at(std::chrono::seconds time, std::vector<VfTraffic> vfs) {
    return {shown_pf, Time{time}, std::move(vfs), {}};
}

VfCounters counted(std::uint64_t bytes, std::uint64_t packets) {
    VfCounters counters;
    counters.rx_bytes = bytes;
    counters.rx_packets = packets;
    counters.tx_dropped = packets / 100;
    return counters;
}

TEST(Rates, AreDifferencesOverTheTimeBetween) {
    auto const rates = rates_between({read_at(10s, {{3, counted(1'000, 100)}})},
                                     {read_at(12s, {{3, counted(501'000, 600)}})});
    VfRates expected;
    expected.rx_bits = 2'000'000;
    expected.rx_packets = 250;
    expected.dropped = 3;  // 2.5, rounded; the driver does not count what it dropped on receipt
    EXPECT_EQ(rates, (std::map<VfId, VfRates>{{{shown_pf, 3}, expected}}));
}

TEST(Rates, OfCountersThatBeganAnewAreUnknown) {
    auto const rates = rates_between({read_at(10s, {{3, counted(9'000, 900)}})},
                                     {read_at(12s, {{3, counted(10, 1)}, {4, counted(10, 1)}})});
    EXPECT_EQ(rates, (std::map<VfId, VfRates>{{{shown_pf, 3}, VfRates{}}}));
}

TEST(Rates, NeedTimeBetween) {
    auto const same = read_at(10s, {{3, counted(9'000, 900)}});
    EXPECT_TRUE(rates_between({same}, {same}).empty());
    EXPECT_TRUE(rates_between({}, {same}).empty());
}

struct TopRows : testing::Test {
    VfView vf(std::uint16_t index, std::optional<std::string> vm = {}) const {
        VfView view;
        view.pf = shown_pf;
        view.vf.index = index;
        if (vm) view.attachment = "of-" + *vm;
        view.vm = std::move(vm);
        return view;
    }
};

TEST_F(TopRows, HaveWhatAVmHasOrTrafficGoesThrough) {
    VfRates busy;
    busy.tx_bits = 5'000'000;
    auto const rows =
        top_rows({vf(0), vf(1, "idle"), vf(2), vf(3, "busy")}, {},
                 {{{shown_pf, 0}, VfRates{}}, {{shown_pf, 2}, busy}, {{shown_pf, 3}, busy}});
    std::vector<std::uint16_t> order;
    for (auto const& row : rows) order.push_back(row.vf.vf.index);
    EXPECT_EQ(order, (std::vector<std::uint16_t>{2, 3, 1})) << "most traffic first";
}

TEST_F(TopRows, TellTheVerdictOfTheAttachment) {
    Attachment proved;
    proved.id = "of-a";
    proved.verification.emplace().verdict = Verdict::pass;
    auto const rows = top_rows({vf(0, "a"), vf(1, "b")}, {proved}, {});
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].verdict, Verdict::pass);
    EXPECT_EQ(rows[1].verdict, std::nullopt);
    auto const table = top_table(rows);
    EXPECT_EQ(table.rows[0][0], "0000:01:00.0/0");
    EXPECT_EQ(table.rows[0][2], "pass");
    EXPECT_EQ(table.rows[1][3], "-") << "unknown is not zero";
    EXPECT_EQ(top_document(rows, Time{10s}).find(R"({"items":[{"vf":"0000:01:00.0/0","vm":"a",)"),
              0U);
}

}  // namespace
}  // namespace vfmgr
