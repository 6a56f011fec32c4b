// SPDX-License-Identifier: Apache-2.0
// Pools, reservations, identities: what no host could accept is refused by the parser.
#include "api/types/pool.hpp"

#include "api/types/identities.hpp"
#include "api/types/network.hpp"
#include "api/types/reservation.hpp"
#include "documents.hpp"

namespace vfmgr {
namespace {

using Violations = std::vector<Violation>;

template <class T>
Violations violations_of(char const* text) {
    return test::refusal_of<T>(text).violations;
}

TEST(PfVfs, AreAllOrSomeOfAPf) {
    for (auto const* const text : {"0000:01:00.0", "0000:01:00.0/3", "0000:01:00.0/0-7"})
        EXPECT_EQ(to_string(PfVfs::parse(text).value()), text);
    auto const some = PfVfs::parse("0000:01:00.0/2-4").value();
    EXPECT_TRUE(some.contains(2) && some.contains(4));
    EXPECT_FALSE(some.contains(1) || some.contains(5));
    for (auto const* const text : {"", "/3", "0000:01:00.0/", "0000:01:00.0/4-2", "0000:01:00.0/1-",
                                   "0000:01:00.0/65536", "0000:01:00.0/a"})
        EXPECT_FALSE(PfVfs::parse(text)) << text;
}

TEST(PciIds, AreFourHexadecimalDigitsEach) {
    EXPECT_EQ(PciIds::parse("15b3:101d").value(), (PciIds{0x15b3, 0x101d}));
    EXPECT_EQ(to_string(PciIds{0x8086, 0x0a}), "8086:000a");
    for (auto const* const text :
         {"", "15b3", "15b3:", "15b3:101", "15b3:101d0", "15B3:101D", "x:y"})
        EXPECT_FALSE(PciIds::parse(text)) << text;
}

TEST(Pool, RefusesDefaultsThatIdentifyOneVf) {
    EXPECT_EQ(violations_of<Pool>(R"({"defaults": {"network": "A", "settings": {
                  "mac": "52:54:00:00:00:01", "trust": true}}})"),
              (Violations{{"/defaults/network", rule_of_network_names},
                          {"/defaults/settings/mac",
                           "identifies one VF, so it can't be a pool's default"}}));
    test::expect_survives<Pool>(R"({"name": "a", "select": {"rdma": false}})");
    EXPECT_EQ(violations_of<Pool>(R"({"name": ""})"),
              (Violations{{"/name", "must not be empty; leave it out"}}));
}

TEST(PfSpec, LabelsAreShortWords) {
    test::expect_survives<PfSpec>(R"({"labels": {"rail": "0", "a.b-c_d": "x"}})");
    EXPECT_EQ(violations_of<PfSpec>(R"({"labels": {"a b": "1"}})").size(), 1U);
    EXPECT_EQ(violations_of<PfSpec>(R"({"labels": {"rail": ""}})")[0].pointer, "/labels/rail");
}

TEST(ReservationSpec, IsOfAPoolOrANetworkForALimitedTime) {
    EXPECT_EQ(violations_of<ReservationSpec>("{}"),
              (Violations{{"/pool", "is required, or a network"}}));
    EXPECT_EQ(violations_of<ReservationSpec>(R"({"pool": "a", "count": 0, "seconds": 9})"),
              (Violations{{"/count", "must be from 1 to 128"},
                          {"/seconds", "must be from 10 to 604800 (7 days)"}}));
    EXPECT_EQ(violations_of<ReservationSpec>(R"({"pool": "a", "count": 129})").size(), 1U);
    test::expect_survives<ReservationSpec>(
        R"({"network": "a", "count": 128, "distinct_pfs": true, "seconds": 604800})");
    test::expect_survives<ReservationSpec>(
        R"({"network": "a", "count": 3, "pfs": [{"pf": "0000:01:00.0", "count": 2},
                                                {"pf": "0000:02:00.0", "count": 1}]})");
    EXPECT_EQ(violations_of<ReservationSpec>(
                  R"({"network": "a", "count": 3, "pfs": [{"pf": "0000:01:00.0", "count": 2}]})"),
              (Violations{{"/count", "must be 2, as many as pfs has"}}));
    EXPECT_EQ(violations_of<ReservationSpec>(
                  R"({"network": "a", "count": 2, "pfs": [{"pf": "0000:01:00.0", "count": 1},
                                                          {"pf": "0000:01:00.0", "count": 1}]})")
                  .size(),
              2U);
}

TEST(Identities, AreUnicastAndApart) {
    EXPECT_EQ(violations_of<Identities>(
                  R"({"macs": ["01:00:00:00:00:00-01:00:00:00:00:01", "00:00:00:00:00:00",
                               "02:00:00:00:00:00-04:00:00:00:00:00", "02:00:00:00:00:07"],
                      "guids": ["00:00:00:00:00:00:00:00-00:00:00:00:00:00:00:01"],
                      "addresses": [{"network": "a", "ranges": ["10.0.0.1"]},
                                    {"network": "a", "ranges": ["10.0.0.2"]}]})"),
              (Violations{{"/macs/3", "overlaps 02:00:00:00:00:00-04:00:00:00:00:00"},
                          {"/macs/0", "must be of unicast MACs with one first octet, and not zero"},
                          {"/macs/1", "must be of unicast MACs with one first octet, and not zero"},
                          {"/macs/2", "must be of unicast MACs with one first octet, and not zero"},
                          {"/guids/0", "must not contain zero"},
                          {"/addresses/1/network", "is already that of addresses/0"}}));
}

TEST(Identities, OfAFleetHaveAGeneration) {
    EXPECT_EQ(
        violations_of<Identities>(
            R"({"claims": {"macs": ["52:54:00:00:00:01"]}, "given_up": {"guids": [
                      "00:00:00:00:00:00:00:01"]}})"),
        (Violations{{"/claims", "requires a generation"}, {"/given_up", "requires a generation"}}));
    EXPECT_EQ(violations_of<Identities>(
                  R"({"generation": 1, "claims": {
                      "macs": ["52:54:00:00:00:01", "52:54:00:00:00:01", "01:00:00:00:00:01"],
                      "guids": ["00:00:00:00:00:00:00:00"],
                      "addresses": [{"network": "a b", "address": "10.0.0.1"}]}})"),
              (Violations{{"/claims/macs/1", "is listed twice"},
                          {"/claims/macs/2", "must be a unicast MAC, and not zero"},
                          {"/claims/guids/0", "must not be zero"},
                          {"/claims/addresses/0", rule_of_network_names}}));
    EXPECT_EQ(violations_of<Identities>(R"({"free": {}})").size(), 1U);
    test::expect_survives<Identities>(
        R"({"generation": 0, "claims": {"macs": ["52:54:00:00:00:01"]}})");
}

TEST(Identities, AreWrittenWithoutWhatIsNotThere) {
    EXPECT_EQ(nlohmann::json(Identities{}).size(), 3U);
    auto const empty = from_json_text<Identities>(R"({"generation": 1, "claims": {}})");
    EXPECT_FALSE(nlohmann::json(empty.value()).contains("claims"));
}

TEST(AttachmentSpec, NamesAPfOrWhatChoosesOne) {
    EXPECT_EQ(violations_of<AttachmentSpec>(R"({"vm": "a"})"),
              (Violations{{"/pf", "is required, or a network, a pool, a reservation or near"}}));
    EXPECT_EQ(violations_of<AttachmentSpec>(R"({"vm": "a", "network": "n", "vf": 1})"),
              (Violations{{"/vf", "requires the PF that it is of"}}));
    EXPECT_EQ(violations_of<AttachmentSpec>(R"({"vm": "a", "pool": "p", "reservation": "r"})"),
              (Violations{{"/pool", "is the reservation's; leave it out"}}));
    for (auto const* const text :
         {R"({"vm": "a", "network": "n"})", R"({"vm": "a", "pool": "p", "verify": "required"})",
          R"({"vm": "a", "reservation": "r", "address": "10.0.0.1"})"})
        test::expect_survives<AttachmentSpec>(text);
}

}  // namespace
}  // namespace vfmgr
