// SPDX-License-Identifier: Apache-2.0
// A body is answered with all of its mistakes: one hides no other.
#include <gmock/gmock.h>

#include "api/types/attachment.hpp"
#include "api/types/daemon.hpp"
#include "api/types/firmware.hpp"
#include "api/types/guest.hpp"
#include "api/types/identities.hpp"
#include "api/types/json.hpp"
#include "api/types/network.hpp"
#include "api/types/pf_state.hpp"
#include "api/types/rdma.hpp"
#include "api/types/reservation.hpp"

namespace vfmgr {
namespace {

using testing::UnorderedElementsAre;

template <class T>
std::vector<std::string> mistakes(char const* body) {
    auto const value = from_json_text<T>(body);
    std::vector<std::string> pointers;
    EXPECT_FALSE(value) << body;
    if (value) return pointers;
    for (auto const& violation : value.error().violations) pointers.push_back(violation.pointer);
    return pointers;
}

TEST(AllMistakes, OfASpecOfAPf) {
    EXPECT_THAT(mistakes<PfSpec>(R"({"mode": "auto", "num_vfs": -1, "vf_driver": "../x", "vfs": [],
                                     "labels": {"a b": "c"}})"),
                UnorderedElementsAre("/mode", "/num_vfs", "/vf_driver", "/vfs", "/labels/a b"));
    EXPECT_THAT(
        mistakes<PfSpec>(R"({"num_vfs": 2, "free_vfs": [
            {"index": 0, "settings": {"mac": "02:00:00:00:00:01"}},
            {"index": 0, "settings": {"mac": "02:00:00:00:00:01"}},
            {"index": 2, "settings": {"trust": true}}]})"),
        UnorderedElementsAre("/free_vfs/1/index", "/free_vfs/1/settings/mac", "/free_vfs/2/index"));
    EXPECT_THAT(mistakes<PfSpec>(R"({"free_vfs": [{"index": 0, "settings": {}}]})"),
                UnorderedElementsAre("/free_vfs/0/settings"));
    // What can't be read moves no place of what follows.
    EXPECT_THAT(mistakes<PfSpec>(R"({"num_vfs": 2, "free_vfs": [
                    {"index": -1, "settings": {"trust": true}},
                    {"index": 1, "settings": {"trust": true}},
                    {"index": 2, "settings": {"trust": true}}]})"),
                UnorderedElementsAre("/free_vfs/0/index", "/free_vfs/2/index"));
}

TEST(AllMistakes, OfANetwork) {
    EXPECT_THAT(mistakes<Network>(R"({"name": "Lab", "prefix": "10.0.0.0/8", "mtu": 5, "vlan": "1",
            "dscp": 64, "rdma": "roce", "ranges": ["11.0.0.1-11.0.0.2"],
            "pfs": [{"pf": "0000:01:00.0", "host_address": "192.168.0.1"}]})"),
                UnorderedElementsAre("/name", "/mtu", "/vlan", "/dscp", "/rdma", "/ranges/0",
                                     "/pfs/0/host_address"));
    EXPECT_THAT(mistakes<Network>(R"({"mtu": 5, "pfs": [{"pf": 5}]})"),
                UnorderedElementsAre("/prefix", "/mtu", "/pfs/0/pf", "/pfs/0/host_address"));
}

TEST(AllMistakes, OfAnAttachment) {
    EXPECT_THAT(
        mistakes<AttachmentSpec>(R"({"vm": "", "pf": "x", "vf": 65536, "best_effort": ["qos"],
            "settings": {"mac": "ff:ff:ff:ff:ff:ff", "vlan": {"id": 4095, "qos": 8}, "trust": 1},
            "address": "10.0.0.2", "verify": "required", "verify_timeout_seconds": 1,
            "verify_every_seconds": 1, "persistence": null, "more": 1})"),
        UnorderedElementsAre("/vm", "/pf", "/vf", "/best_effort/0", "/settings/mac",
                             "/settings/vlan/id", "/settings/vlan/qos", "/settings/trust",
                             "/address", "/verify", "/verify_timeout_seconds",
                             "/verify_every_seconds", "/verify_every_seconds", "/persistence",
                             "/more"));
    EXPECT_THAT(mistakes<AttachmentSpec>(R"({"network": 5, "vm": "a\nb", "address": "nowhere"})"),
                UnorderedElementsAre("/network", "/vm", "/address"));
}

TEST(AllMistakes, OfTheOtherBodies) {
    EXPECT_THAT(mistakes<RdmaLinkSpec>(R"({"type": "roce", "ifname": "../x", "more": 1})"),
                UnorderedElementsAre("/type", "/ifname", "/more"));
    EXPECT_THAT(mistakes<TokenRequest>(R"({"role": "root", "description": "\u001b", "days": 0})"),
                UnorderedElementsAre("/role", "/description", "/days"));
    EXPECT_THAT(mistakes<InteropRequest>(R"({"seconds": 0, "test": "x", "message_bytes": 0})"),
                UnorderedElementsAre("/seconds", "/test", "/message_bytes"));
    EXPECT_THAT(
        mistakes<FirmwareRequest>(
            R"({"settings": {"NUM_OF_VFS": -1, "LINK_TYPE_P1": "x", "more": 1}})"),
        UnorderedElementsAre("/settings/NUM_OF_VFS", "/settings/LINK_TYPE_P1", "/settings/more"));
    EXPECT_THAT(mistakes<ReservationSpec>(R"({"count": 0, "seconds": 1})"),
                UnorderedElementsAre("/pool", "/count", "/seconds"));
    EXPECT_THAT(mistakes<Identities>(R"({"addresses": [{"network": "A", "ranges": 5}]})"),
                UnorderedElementsAre("/addresses/0/network", "/addresses/0/ranges"));
    EXPECT_THAT(mistakes<RekeyRequest>(R"({"to": "x", "more": 1})"),
                UnorderedElementsAre("/to", "/more"));
}

}  // namespace
}  // namespace vfmgr
