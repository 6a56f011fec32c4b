// SPDX-License-Identifier: Apache-2.0
// Messages to and about a served responder: each limit is refused at a known place.
#include "api/types/guest.hpp"

#include "documents.hpp"

namespace vfmgr {
namespace {

using test::Refused;

constexpr char const* target = R"({"host": "10.99.0.2", "fingerprint":
    "6f1c6f1c6f1c6f1c6f1c6f1c6f1c6f1c6f1c6f1c6f1c6f1c6f1c6f1c6f1c6f1c", "token": "vfr_1"})";
constexpr char const* responder = R"({"version": "0.2.0", "address": "192.168.100.200",
    "echo_port": 8472, "mac": null, "mtu": 9000, "rdma_device": "rxe0"})";
constexpr char const* opening = R"({"permit": {"attachment": "a1", "run": "r", "nonce": "n",
    "vf_mac": "52:54:00:11:22:33", "peer_address": "192.168.100.10", "mtu": 9000, "rdma": "rxe",
    "path": null}, "request": {"attachment": "a1", "run": "r", "nonce": "n",
    "guest": {"gid": "00000000000000000000ffffc0a8640a", "qp_num": 1, "psn": 2,
              "path_mtu": 4096}}})";

constexpr auto read_target = &test::refusal_of<ResponderTarget>;
constexpr auto read_responder = &test::refusal_of<ResponderInfo>;
constexpr auto read_opening = &test::refusal_of<SessionOpening>;
constexpr char const* no_fingerprint = "must be a SHA-256 fingerprint: 64 hexadecimal digits";
constexpr char const* no_host = "must be a host name or an address";

class ResponderMessageRefuses : public testing::TestWithParam<Refused> {};
TEST_P(ResponderMessageRefuses, AtItsPlace) {
    test::expect_refused(GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    Limits, ResponderMessageRefuses,
    testing::Values(
        Refused{"host_empty", read_target, target, R"({"host": ""})", "/host", no_host},
        Refused{"host_url", read_target, target, R"({"host": "https://a"})", "/host", no_host},
        Refused{"port_0", read_target, target, R"({"port": 0})", "/port",
                "must be from 1 to 65535"},
        Refused{"fingerprint_short", read_target, target, R"({"fingerprint": "6f"})",
                "/fingerprint", no_fingerprint},
        Refused{"token_none", read_target, target, R"({"token": null})", "/token", "is required"},
        Refused{"token_empty", read_target, target, R"({"token": ""})", "/token",
                "must not be empty"},
        Refused{"token_newline", read_target, target, R"({"token": "a\nb"})", "/token",
                "must not contain control characters"},
        Refused{"mtu_small", read_responder, responder, R"({"mtu": 67})", "/mtu",
                "must be from 68 to 65535"},
        Refused{"device_escape", read_responder, responder, R"({"rdma_device": "\u001b[2J"})",
                "/rdma_device", "must not contain control characters"},
        Refused{"permit_mtu", read_opening, opening, R"({"permit": {"mtu": 65536}})", "/permit/mtu",
                "must be from 68 to 65535"},
        Refused{"permit_dscp", read_opening, opening, R"({"permit": {"dscp": 64}})", "/permit/dscp",
                "must be from 0 to 63"},
        Refused{"permit_path", read_opening, opening, R"({"permit": {"path": "loop"}})",
                "/permit/path", "must be one of internal_switch, wire"},
        Refused{"permit_nonce", read_opening, opening, R"({"permit": {"nonce": "\u0000"}})",
                "/permit/nonce", "must not contain control characters"},
        Refused{"host_netdev", read_opening, opening, R"({"permit": {"host_netdev": "eth0"}})",
                "/permit/host_netdev", "is not known here"}),
    test::name_of);

TEST(ResponderMessages, SurviveBeingWritten) {
    test::expect_survives<ResponderInfo>(responder);
    test::expect_survives<SessionOpening>(opening);
    test::expect_survives<SessionOpening>(test::patched(opening, R"({"permit": {"dscp": 63}})"));
    EXPECT_EQ(from_json_text<ResponderTarget>(target)->place, (HostPort{"10.99.0.2", 8473}));
}

TEST(HostPorts, AreReadAndWritten) {
    for (auto const* text : {"host:1", "10.0.0.1:65535", "[::1]:8473"})
        EXPECT_EQ(to_string(parse_host_port(text, 9).value()), text);
    EXPECT_EQ(parse_host_port("host", 9), (HostPort{"host", 9}));
    EXPECT_EQ(parse_host_port("[fe80::1]", 9), (HostPort{"fe80::1", 9}));
    for (auto const* text : {"", ":1", "host:", "host:0", "host:65536", "host:1x", "[::1", "a b",
                             "[]:1", "a@b:1", "::1", "[::1]8473"})
        EXPECT_EQ(parse_host_port(text, 9), std::nullopt) << text;
}

}  // namespace
}  // namespace vfmgr
