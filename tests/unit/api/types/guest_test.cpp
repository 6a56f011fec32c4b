// SPDX-License-Identifier: Apache-2.0
// A guest's messages are data with limits: each is refused at a known place.
#include "api/types/guest.hpp"
#include "api/types/topology.hpp"

#include "documents.hpp"

namespace vfmgr {
namespace {

using test::Refused;

constexpr char const* end = R"({"gid": "fe80000000000000248a07fffe8dae2e", "qp_num": 16777215,
    "psn": 0, "path_mtu": 4096})";
constexpr char const* request = R"({"attachment": "3f9c2b1d", "run": "r", "nonce": "n",
    "guest": {"gid": "00000000000000000000ffffc0a86402", "qp_num": 1, "psn": 2,
              "path_mtu": 256, "reads_max": 255}})";
constexpr char const* report = R"({"nonce": "n", "tests": [{"name": "rc_ping", "verdict": "pass",
    "by": "guest", "figures": {"p50_us": 1.5}}], "digests": {"rc_ping": "ab"},
    "facts": {"kernel": "6.1"}, "error": ""})";

constexpr char const* stream = R"({"kind": "write_echo", "message_bytes": 8, "pairs": [
    {"gid": "00000000000000000000ffffc0a86402", "qp_num": 1, "psn": 2, "path_mtu": 256}],
    "back": {"address": 4096, "rkey": 7, "length": 8}})";

constexpr auto read_stream = &test::refusal_of<StreamRequest>;
constexpr auto read_end = &test::refusal_of<QueuePairEnd>;
constexpr auto read_request = &test::refusal_of<SessionRequest>;
constexpr auto read_report = &test::refusal_of<GuestReport>;
constexpr char const* gid = "must be 32 lower-case hexadecimal digits";
constexpr char const* path_mtus = "must be one of 256, 512, 1024, 2048, 4096";
constexpr char const* controls = "must not contain control characters";

class GuestMessageRefuses : public testing::TestWithParam<Refused> {};
TEST_P(GuestMessageRefuses, AtItsPlace) {
    test::expect_refused(GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    Limits, GuestMessageRefuses,
    testing::Values(
        Refused{"end_no_object", read_request, request, R"({"guest": 5})", "/guest",
                "must be an object"},
        Refused{"gid_empty", read_end, end, R"({"gid": ""})", "/gid", gid},
        Refused{"gid_short", read_end, end, R"({"gid": "fe80000000000000248a07fffe8dae2"})", "/gid",
                gid},
        Refused{"gid_upper", read_end, end, R"({"gid": "FE80000000000000248a07fffe8dae2e"})",
                "/gid", gid},
        Refused{"gid_colons", read_end, end, R"({"gid": "fe80::248a:7ff:fe8d:ae2e"})", "/gid", gid},
        Refused{"qp_num_25_bits", read_end, end, R"({"qp_num": 16777216})", "/qp_num",
                "must fit into 24 bits"},
        Refused{"psn_25_bits", read_end, end, R"({"psn": 16777216})", "/psn",
                "must fit into 24 bits"},
        Refused{"path_mtu_0", read_end, end, R"({"path_mtu": 0})", "/path_mtu", path_mtus},
        Refused{"path_mtu_128", read_end, end, R"({"path_mtu": 128})", "/path_mtu", path_mtus},
        Refused{"path_mtu_1500", read_end, end, R"({"path_mtu": 1500})", "/path_mtu", path_mtus},
        Refused{"path_mtu_8192", read_end, end, R"({"path_mtu": 8192})", "/path_mtu", path_mtus},
        Refused{"reads_max", read_end, end, R"({"reads_max": 256})", "/reads_max",
                "must be a whole number from 0 to 255"},
        Refused{"lid_0", read_end, end, R"({"subnet": {"lid": 0, "pkey": 65535}})", "/subnet/lid",
                "must be from 1 to 49151"},
        Refused{"lid_multicast", read_end, end, R"({"subnet": {"lid": 49152, "pkey": 65535}})",
                "/subnet/lid", "must be from 1 to 49151"},
        Refused{"pkey_0", read_end, end, R"({"subnet": {"lid": 1, "pkey": 32768}})", "/subnet/pkey",
                "must have one of the lower 15 bits"},
        Refused{"nested_end", read_request, request, R"({"guest": {"psn": -1}})", "/guest/psn",
                "must be a whole number from 0 to 4294967295"},
        Refused{"run_newline", read_request, request, R"({"run": "a\nb"})", "/run", controls},
        Refused{"nonce_nul", read_request, request, R"({"nonce": "\u0000"})", "/nonce", controls},
        Refused{"attachment_escape", read_request, request, R"({"attachment": "\u001b[2J"})",
                "/attachment", controls},
        Refused{"stream_kind", read_stream, stream, R"({"kind": "sends"})", "/kind",
                "must be one of one_sided, send, send_echo, write_echo, ud_echo, cm_ping, "
                "transfer, gpu_transfer"},
        Refused{"message_bytes_0", read_stream, stream, R"({"message_bytes": 0})", "/message_bytes",
                "must be from 1 to 8388608"},
        Refused{"message_bytes_many", read_stream, stream,
                R"({"kind": "one_sided", "back": null, "message_bytes": 8388609})",
                "/message_bytes", "must be from 1 to 8388608"},
        Refused{"depth_0", read_stream, stream, R"({"depth": 0})", "/depth",
                "must be from 1 to 1024"},
        Refused{"depth_many", read_stream, stream, R"({"depth": 1025})", "/depth",
                "must be from 1 to 1024"},
        Refused{"pairs_none", read_stream, stream,
                R"({"kind": "one_sided", "back": null, "pairs": []})", "/pairs",
                "must be from 1 to 16"},
        Refused{"back_missing", read_stream, stream, R"({"back": null})", "/back",
                "must be a region of message_bytes for a write_echo of one pair"},
        Refused{"back_short", read_stream, stream, R"({"message_bytes": 9})", "/back",
                "must be a region of message_bytes for a write_echo of one pair"},
        Refused{"back_of_a_send", read_stream, stream, R"({"kind": "send_echo"})", "/back",
                "must be left out for this kind"},
        Refused{"ud_too_short", read_stream, stream,
                R"({"kind": "ud_echo", "back": null, "message_bytes": 7})", "/kind",
                "ud_echo has one pair and 8 to 4096 bytes"},
        Refused{"ud_too_long", read_stream, stream,
                R"({"kind": "ud_echo", "back": null, "message_bytes": 4097})", "/kind",
                "ud_echo has one pair and 8 to 4096 bytes"},
        Refused{"cm_with_pairs", read_stream, stream, R"({"kind": "cm_ping", "back": null})",
                "/kind", "cm_ping has no pairs and 1 to 1048576 bytes"},
        Refused{"cm_too_long", read_stream, stream,
                R"({"kind": "cm_ping", "back": null, "pairs": [], "message_bytes": 1048577})",
                "/kind", "cm_ping has no pairs and 1 to 1048576 bytes"},
        Refused{"cm_back", read_stream, stream, R"({"kind": "cm_ping", "pairs": []})", "/back",
                "must be left out for this kind"},
        Refused{"transfer_of_odd_bytes", read_stream, stream, R"({"kind": "transfer"})",
                "/message_bytes", "must be a multiple of 64 for a transfer"},
        Refused{"transfer_of_nothing", read_stream, stream,
                R"({"kind": "transfer", "message_bytes": 64, "back": null})", "/back",
                "must be a region of message_bytes for a transfer of one pair"},
        Refused{"dc_target_of_another_kind", read_stream, stream,
                R"({"dct": {"qp_num": 1, "key": 2}})", "/dct", "must be left out for this kind"},
        Refused{"dc_target_without_key", read_stream, stream, R"({"dct": {"qp_num": 1}})",
                "/dct/key", "is required"},
        Refused{"dc_target_beyond_numbers", read_stream, stream,
                R"({"dct": {"qp_num": 16777216, "key": 2}})", "/dct/qp_num",
                "must fit into 24 bits"},
        Refused{"session_unknown", read_request, request, R"({"address": "10.0.0.1"})", "/address",
                "is not known here"},
        Refused{"error_delete", read_report, report, R"({"error": "\u007f"})", "/error", controls},
        Refused{"fact_control", read_report, report, R"({"facts": {"kernel": "\t"}})",
                "/facts/kernel", controls},
        Refused{"fact_name", read_report, report, R"({"facts": {"a/\u0007": ""}})",
                "/facts/a~1\x07", controls},
        Refused{"digest_number", read_report, report, R"({"digests": {"rc_ping": 5}})",
                "/digests/rc_ping", "must be a string"},
        Refused{"test_verdict", read_report, report,
                R"({"tests": [{"name": "x", "verdict": "PASS", "by": "guest"}]})",
                "/tests/0/verdict", "must be one of pass, fail, skip, not_applicable, pending"},
        Refused{"test_name", read_report, report,
                R"({"tests": [{"name": "\u0001", "verdict": "pass", "by": "guest"}]})",
                "/tests/0/name", controls},
        Refused{"figure_text", read_report, report,
                R"({"tests": [{"name": "x", "verdict": "pass", "by": "guest",
                               "figures": {"p50_us": "NaN"}}]})",
                "/tests/0/figures/p50_us", "must be a number"}),
    test::name_of);

TEST(GuestMessages, SurviveTheirJson) {
    test::expect_survives<QueuePairEnd>(end);
    test::expect_survives<SessionRequest>(request);
    test::expect_survives<GuestReport>(report);
    test::expect_survives<GuestReport>(R"({"nonce": "", "tests": []})");
    test::expect_survives<GuestConfig>(R"({"revision": 18446744073709551615, "attachments": [
        {"attachment": "3f9c2b1d", "mac": "02:00:00:00:00:01", "address": "10.0.0.2",
         "prefix_length": 24, "mtu": 9000, "rdma": "rxe", "responder": "10.0.0.1",
         "echo_port": 65535, "run": null}]})");
    auto const region = R"({"address": 18446744073709551615, "rkey": 4294967295, "length": 0})";
    test::expect_survives<SessionOffer>(fmt::format(
        R"({{"session": "s", "host": {}, "write": {}, "write_seed": 1, "read": {},
            "ping_count": 1, "ping_size": 2, "ping_seed": 3, "deadline_seconds": 4}})",
        end, region, region));
    test::expect_survives<StreamRequest>(stream);
    test::expect_survives<HostTopology>(R"({"functions": [{"in_guest": "00/02.1/00.0",
        "vendor": 5555, "device": 4126, "host": {"address": "0000:1c:00.2",
        "above": [{"address": "0000:16:01.0", "vendor": 4096, "device": 49200,
                   "subsystem_vendor": 4136, "subsystem_device": 114}],
        "numa_node": null, "speed_gts": 32.0, "width": 16}}],
        "notes": ["no ATS"]})");
    test::expect_survives<RunRequest>(R"({"profile": "deep"})");
    test::expect_survives<StreamOffer>(fmt::format(
        R"({{"stream": "s", "pairs": [{}], "memory": {}, "seconds": 60}})", end, region));
}

TEST(GuestMessages, OfCmPingHaveAPortAndNoPairs) {
    test::expect_survives<StreamRequest>(
        R"({"kind": "cm_ping", "message_bytes": 1048576, "pairs": [], "back": null})");
    test::expect_survives<StreamOffer>(
        R"({"stream": "s", "pairs": [], "memory": {"address": 0, "rkey": 0, "length": 0},
            "seconds": 60, "cm_port": 45671})");
    // A vf-guest that does not know the member refuses it, and never requests this kind.
    EXPECT_FALSE(nlohmann::json(StreamOffer{}).contains("cm_port"));
}

TEST(GuestMessages, OfTransfersHaveASeedAndMemoryOfAnyLength) {
    test::expect_survives<StreamRequest>(fmt::format(
        R"({{"kind": "transfer", "message_bytes": 8388608, "pairs": [{}],
            "back": {{"address": 4096, "rkey": 7, "length": 17179869184}}}})",
        end));
    test::expect_survives<StreamOffer>(fmt::format(
        R"({{"stream": "s", "pairs": [{}], "memory": {{"address": 0, "rkey": 0, "length": 0}},
            "seconds": 60, "seed": 18446744073709551615}})",
        end));
    EXPECT_FALSE(nlohmann::json(StreamOffer{}).contains("seed"));
}

TEST(GuestMessages, OfTransfersNameADcTargetAndATransport) {
    test::expect_survives<StreamRequest>(fmt::format(
        R"({{"kind": "gpu_transfer", "message_bytes": 64, "pairs": [{}],
            "back": {{"address": 4096, "rkey": 7, "length": 64}},
            "dct": {{"qp_num": 16777215, "key": 18446744073709551615}}}})",
        end));
    for (auto const* said : {R"("dc")", R"("rc", "transport_reason": "mlx5_0: no DC initiator")"})
        test::expect_survives<StreamOffer>(fmt::format(
            R"({{"stream": "s", "pairs": [{}], "memory": {{"address": 0, "rkey": 0, "length": 0}},
                "seconds": 60, "seed": 1, "transport": {}}})",
            end, said));
    // A version that does not know them refuses them: only a client that requests them gets them.
    EXPECT_FALSE(nlohmann::json(StreamRequest{}).contains("dct"));
    EXPECT_FALSE(nlohmann::json(StreamOffer{}).contains("transport"));
    EXPECT_FALSE(nlohmann::json(StreamOffer{}).contains("transport_reason"));
}

// Each limit: the last value that fits, and the first that does not, with the place of its refusal.
TEST(GuestMessages, HaveLimits) {
    struct Row {
        char const *member, *pointer;
        std::size_t bytes_max;
    };
    for (auto const& [member, pointer, bytes_max] :
         {Row{"/nonce", "/nonce", 64}, Row{"/error", "/error", 1024},
          Row{"/facts/kernel", "/facts/kernel", 256},
          Row{"/digests/rc_ping", "/digests/rc_ping", 256},
          Row{"/tests/0/name", "/tests/0/name", 64},
          Row{"/tests/0/detail", "/tests/0/detail", 1024},
          Row{"/tests/0/remedy", "/tests/0/remedy", 1024}}) {
        auto document = nlohmann::json::parse(report);
        nlohmann::json::json_pointer const place(member);
        document[place] = std::string(bytes_max, 'a');
        test::expect_survives<GuestReport>(document.dump());
        document[place] = std::string(bytes_max + 1, 'a');
        EXPECT_EQ(test::refusal_of<GuestReport>(document.dump()).violations,
                  (std::vector<Violation>{
                      {pointer, fmt::format("must be at most {} characters", bytes_max)}}));
    }
}

TEST(GuestMessages, HaveLimitedLists) {
    struct Row {
        char const* list;
        nlohmann::json item;
        std::size_t count_max;
    };
    for (auto const& [list, item, count_max] :
         {Row{"/tests", {{"name", "x"}, {"verdict", "pass"}, {"by", "host"}}, 32},
          Row{"/tests/0/figures", 1.0, 32}, Row{"/digests", "ab", 8}, Row{"/facts", "x", 16}}) {
        auto document = nlohmann::json::parse(report);
        auto& members = document[nlohmann::json::json_pointer(list)];
        auto const add = [&, &value = item] {
            if (members.is_array())
                members.push_back(value);
            else
                members[fmt::format("name{}", members.size())] = value;
        };
        while (members.size() < count_max) add();
        test::expect_survives<GuestReport>(document.dump());
        add();
        EXPECT_EQ(test::refusal_of<GuestReport>(document.dump()).violations,
                  (std::vector<Violation>{{list, fmt::format("must be at most {}", count_max)}}));
    }
}

// An item that could not be parsed is not in the list: a rule would count wrongly.
TEST(GuestMessages, RulesAreForWhatWasRead) {
    auto document = nlohmann::json::parse(report);
    document["tests"] = {5, {{"name", "\n"}, {"verdict", "pass"}, {"by", "host"}}};
    EXPECT_EQ(test::refusal_of<GuestReport>(document.dump()).violations,
              (std::vector<Violation>{{"/tests/0", "must be an object"}}));
}

}  // namespace
}  // namespace vfmgr
