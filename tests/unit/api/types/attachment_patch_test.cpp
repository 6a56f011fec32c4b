// SPDX-License-Identifier: Apache-2.0
#include "api/types/attachment_patch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/types/json.hpp"

namespace vfmgr {
namespace {

using testing::ElementsAre;

std::vector<std::string> violations(std::string_view text) {
    auto const read = from_json_text<AttachmentPatch>(text);
    std::vector<std::string> all;
    if (read) return all;
    EXPECT_EQ(http_status(read.error()), 422);
    for (auto const& [pointer, detail] : read.error().violations)
        all.push_back(pointer + " " + detail);
    return all;
}

TEST(ReadAttachmentPatch, NullTakesAValueAway) {
    auto const patch = from_json_text<AttachmentPatch>(
                           R"({"settings": {"vlan": null, "trust": true, "mac": null}})")
                           .value();
    EXPECT_THAT(patch.settings.removed, ElementsAre(VfAttribute::mac, VfAttribute::vlan));
    EXPECT_EQ(patch.settings.set.trust, true);
    EXPECT_FALSE(patch.settings.vlan);
    EXPECT_THAT(named_by(patch.settings),
                ElementsAre(VfAttribute::mac, VfAttribute::vlan, VfAttribute::trust));
}

TEST(ReadAttachmentPatch, AVlanIsMergedMemberByMember) {
    auto const vlan = [](char const* text) {
        return from_json_text<AttachmentPatch>(text).value().settings.vlan;
    };
    EXPECT_EQ(vlan(R"({"settings": {"vlan": {"id": 5}}})"), (VlanPatch{5, {}, {}}));
    EXPECT_EQ(vlan(R"({"settings": {"vlan": {"qos": null, "proto": null}}})"),
              (VlanPatch{{}, 0, VlanProtocol::dot1q}));
    EXPECT_EQ(vlan(R"({"settings": {"vlan": {}}})"), VlanPatch{});
}

TEST(ReadAttachmentPatch, WhatCantChangeIsNamedAtOnceWithTheRemedy) {
    auto const all = violations(
        R"({"vm": "x", "pf": null, "vf": 1, "pool": "fast", "colour": 1,
            "settings": {"roce": true, "node_guid": null, "vlan": {"id": null}}})");
    constexpr auto fixed =
        " can't be changed while the VF is attached: detach it, and attach it again";
    using std::string;
    EXPECT_THAT(all, testing::UnorderedElementsAre(
                         string("/vm") + fixed, string("/pf") + fixed, string("/vf") + fixed,
                         string("/pool") + fixed, string("/settings/roce") + fixed,
                         string("/settings/node_guid") + fixed, "/colour is not known here",
                         "/settings/vlan/id must not be null; leave it out"));
}

TEST(ReadAttachmentPatch, ValuesHaveTheRulesOfARequest) {
    EXPECT_THAT(violations(R"({"settings": {"mac": "03:00:00:00:00:01", "vlan": {"id": 4095}}})"),
                testing::SizeIs(2));
    EXPECT_THAT(violations(R"({"best_effort": ["trust", "trust"], "verify_timeout_seconds": 1})"),
                testing::SizeIs(2));
    EXPECT_THAT(violations(R"({"settings": 1})"), testing::SizeIs(1));
    EXPECT_THAT(violations(R"([])"), testing::SizeIs(1));
}

}  // namespace
}  // namespace vfmgr
