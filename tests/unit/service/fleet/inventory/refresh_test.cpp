// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/refresh.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "api/types/event.hpp"

namespace vfmgr::fleet {
namespace {

std::vector<std::string> paths_after(std::string const& event) {
    Refresh refresh;
    refresh.note(event);
    std::vector<std::string> paths;
    while (auto const get = refresh.next()) paths.push_back(path_of(*get));
    return paths;
}

std::string event(std::string const& members) {
    return R"({"number":7,"at":"2026-01-31T12:00:00.000Z","detail":"",)" + members + "}";
}

using Paths = std::vector<std::string>;

TEST(Refresh, ReadsWhatAnEventIsAbout) {
    EXPECT_EQ(paths_after(event(R"("kind":"attached","pf":"0000:01:00.0","vf":2,
        "attachment":"12ab34cd","vm":"vm1","vm_uuid":"u1")")),
              (Paths{"/v1/pfs/0000:01:00.0/vfs/2", "/v1/vms/u1", "/v1/attachments/12ab34cd"}));
    EXPECT_EQ(paths_after(event(R"("kind":"link_down","pf":"0000:01:00.0")")),
              (Paths{"/v1/pfs/0000:01:00.0"}));
    EXPECT_EQ(paths_after(event(R"("kind":"network_changed","network":"blue")")),
              (Paths{"/v1/pfs", "/v1/networks"}));
    EXPECT_EQ(paths_after(event(R"("kind":"identities_changed")")), (Paths{"/v1/identities"}));
    EXPECT_EQ(paths_after(event(R"("kind":"token_created","token":"ab12cd34")")), Paths{});
}

// Of a host with a newer version, too: what is not understood may be about anything.
TEST(Refresh, ReadsEverythingAfterWhatItDoesNotKnow) {
    auto const all = paths_after(event(R"("kind":"vfmgrd_started")"));
    EXPECT_EQ(all.size(), 7U);
    EXPECT_EQ(paths_after(event(R"("kind":"teleported","pf":"0000:01:00.0")")), all);
    EXPECT_EQ(paths_after("no JSON"), all);
}

TEST(Refresh, ReadsOnceHoweverManyEventsThereAre) {
    Refresh refresh;
    for (int i = 0; i < 3; ++i) refresh.note(event(R"("kind":"drift","pf":"0000:01:00.0","vf":2)"));
    EXPECT_TRUE(refresh.next());
    EXPECT_TRUE(refresh.empty());
}

TEST(Refresh, EveryKindIsDecidedAbout) {
    for (auto const& [kind, name] : enum_names<EventKind>)
        if (kind != EventKind::vfmgrd_started && kind != EventKind::fleet_joined &&
            kind != EventKind::fleet_left)
            EXPECT_LT(paths_after(event(fmt::format(R"("kind":"{}")", name))).size(), 7U) << name;
}

}  // namespace
}  // namespace vfmgr::fleet
