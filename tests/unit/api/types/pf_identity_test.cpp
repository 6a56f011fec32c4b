// SPDX-License-Identifier: Apache-2.0
// What distinguishes PFs, and what only distinguishes cards.
#include "api/types/pf.hpp"

#include "documents.hpp"

namespace vfmgr {
namespace {

MacAddress const mac{{0x52, 0x54, 0, 0, 1, 1}};
MacAddress const other_mac{{0x52, 0x54, 0, 0, 1, 2}};
PfIdentity const port{mac, {}, "MT2108X00001"};

TEST(PfIdentity, SurvivesItsJson) {
    test::expect_survives<PfIdentity>(
        R"({"mac": "52:54:00:00:01:01", "guid": null, "serial": "MT2108X00001"})");
    test::expect_survives<PfIdentity>(
        R"({"mac": null, "guid": "24:8a:07:03:00:8d:ae:2e", "serial": null})");
    EXPECT_FALSE(from_json_text<PfIdentity>(R"({"mac": null, "serial": "a\u0000b"})"));
    EXPECT_FALSE(from_json_text<PfIdentity>(R"({"serial": ""})"));
}

TEST(PfIdentity, IsToldByMacOrGuidAndDeniedByAnything) {
    EXPECT_EQ(same_pf(port, port), SamePf::yes);
    EXPECT_EQ(same_pf(port, {mac, {}, {}}), SamePf::yes) << "its VPD can't be read";
    EXPECT_EQ(same_pf(port, {other_mac, {}, "MT2108X00001"}), SamePf::no) << "the other port";
    EXPECT_EQ(same_pf(port, {mac, {}, "MT2108X00002"}), SamePf::no) << "a MAC can be written";
    EXPECT_EQ(same_pf({{}, Guid{7}, {}}, {{}, Guid{7}, {}}), SamePf::yes);
    EXPECT_EQ(same_pf({{}, Guid{7}, {}}, {{}, Guid{8}, {}}), SamePf::no);
}

TEST(PfIdentity, IsUnknownWhereNothingCanBeCompared) {
    EXPECT_EQ(same_pf(port, {}), SamePf::unknown);
    EXPECT_EQ(same_pf({}, port), SamePf::unknown);
    EXPECT_EQ(same_pf(port, {{}, Guid{7}, {}}), SamePf::unknown);
    EXPECT_EQ(same_pf(port, {{}, {}, "MT2108X00001"}), SamePf::unknown)
        << "a serial is the card's, whichever of its ports this is";
}

TEST(PfIdentity, IsCompletedAndNeverReplaced) {
    EXPECT_EQ(completed({}, port), port);
    EXPECT_EQ(completed({mac, {}, {}}, port), port);
    EXPECT_EQ(completed({{}, {}, port.serial}, port), port) << "first seen without its driver";
    EXPECT_EQ(completed(port, {other_mac, {}, {}}), port);
    EXPECT_EQ(completed({mac, {}, {}}, {other_mac, {}, "MT2108X00001"}), (PfIdentity{mac, {}, {}}));
    EXPECT_EQ(completed({mac, {}, {}}, {{}, {}, "MT2108X00009"}), (PfIdentity{mac, {}, {}}))
        << "nothing says that this is its card";
    EXPECT_EQ(completed({{}, {}, port.serial}, {mac, {}, {}}), (PfIdentity{{}, {}, port.serial}));
}

TEST(PfIdentity, IsReadable) {
    EXPECT_EQ(to_string(port), "MAC 52:54:00:00:01:01, serial MT2108X00001");
    EXPECT_EQ(to_string(PfIdentity{}), "an unknown identity");
}

}  // namespace
}  // namespace vfmgr
