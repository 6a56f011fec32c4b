// SPDX-License-Identifier: Apache-2.0
#include "service/cli/verification_history.hpp"

#include <gmock/gmock.h>

#include "api/types/json.hpp"
#include "tests/unit/service/cli/answering_api.hpp"
#include "tests/unit/service/cli/answers.hpp"

namespace vfmgr {
namespace {

using testing::HasSubstr;

nlohmann::json const runs = nlohmann::json::parse(R"({"items": [
    {"run": "r2", "attachment": "3f9c2b1d", "verdict": "pass",
     "started_at": "2026-01-31T12:00:02.000Z", "responder": "10.99.0.2:8473", "path": "wire",
     "tests": [{"name": "rdma_write", "verdict": "pass", "by": "host",
                "figures": {"bandwidth_mbps": 193.44}},
               {"name": "write_bandwidth", "verdict": "pass", "by": "guest",
                "figures": {"bandwidth_mbps": 21.25}},
               {"name": "read_latency", "verdict": "pass", "by": "guest",
                "figures": {"p50_us": 180.31}}],
     "warnings": [{"test": "write_bandwidth", "detail": "slower", "remedy": "look at top"}],
     "of a newer vfmgrd": {"all": true}},
    {"run": "r1", "attachment": "aaaaaaaa", "verdict": "fail",
     "started_at": "2026-01-31T12:00:01.000Z", "responder": null, "path": "internal_switch",
     "tests": [], "warnings": [], "detail": "bytes differ", "remedy": "look for errors"}],
    "next": null})");

std::vector<Verification> read_runs(nlohmann::json const& list) {
    return from_json_document<ItemList<Verification>>(list, UnknownKeys::ignored).value().items;
}

TEST(VerificationHistory, ShowsFiguresAndWhatIsToBeDone) {
    EXPECT_EQ(
        verification_list_page(read_runs(runs), {}),
        "RUN  STARTED                   VERDICT  ATTACHMENT  RESPONDER       PATH             "
        "BANDWIDTH MBPS               P50 US      WARNINGS\n"
        "r2   2026-01-31T12:00:02.000Z  pass     3f9c2b1d    10.99.0.2:8473  wire             "
        "rdma_write=193.4 write=21.2  read=180.3  write_bandwidth\n"
        "r1   2026-01-31T12:00:01.000Z  fail     aaaaaaaa    this host       internal_switch  "
        "-                            -           -\n"
        "\n"
        "r2 warning: slower\n"
        "  remedy: look at top\n"
        "r1 failed: bytes differ\n"
        "  remedy: look for errors\n");
}

TEST(VerificationHistory, IsThatOfAVfOrOfAnAttachment) {
    test::Api api;
    api.on("GET /v1/pfs/0000:01:00.0/vfs/3/verifications", 200, runs);
    auto const of_vf = test::vfctl(api, {"vf", "verifications", "0000:01:00.0", "3"});
    EXPECT_EQ(of_vf.code, 0) << of_vf.err;
    EXPECT_THAT(of_vf.out, HasSubstr("r2 warning: slower\n  remedy: look at top\n"));
    EXPECT_EQ(test::vfctl(api, {"-j", "vf", "verifications", "0000:01:00.0", "3"}).out,
              runs.dump() + "\n");
    EXPECT_EQ(test::vfctl(api, {"-o", "name", "vf", "verifications", "0000:01:00.0", "3"}).out,
              "r2\nr1\n");
    api.on("GET /v1/attachments", 200,
           test::list<Attachment>({test::attachment("3f9c2b1d", "vm1")}));
    api.on("GET /v1/attachments/3f9c2b1d/verifications", 200, runs);
    auto const of_attachment = test::vfctl(api, {"attachment", "verifications", "vm1"});
    EXPECT_EQ(of_attachment.code, 0) << of_attachment.err;
    EXPECT_THAT(of_attachment.out, HasSubstr("r1 failed: bytes differ\n"));
    api.on("GET /v1/pfs", 200, test::list<PfView>({test::pf("0000:01:00.0", "ens1")}));
    auto const no_number = test::vfctl(api, {"vf", "verifications", "0000:01:00.0"});
    EXPECT_EQ(no_number.code, 2);
    EXPECT_THAT(no_number.err, HasSubstr("names a PF, and not one of its VFs"));
}

TEST(VfHistory, TellsWhatHappenedWithItsCause) {
    test::Api api;
    auto const events = nlohmann::json::parse(R"({"items": [
        {"number": 9, "at": "2026-01-31T12:00:02.000Z", "kind": "settled",
         "pf": "0000:01:00.0", "vm": "vm1", "attachment": "3f9c2b1d",
         "because_of": 8, "detail": "no longer: VF 3 is gone"},
        {"number": 8, "at": "2026-01-31T12:00:01.000Z", "kind": "drift",
         "pf": "0000:01:00.0", "vm": "vm1", "attachment": "3f9c2b1d",
         "because_of": null, "detail": "VF 3 is gone"}], "next": null})");
    api.on("GET /v1/pfs/0000:01:00.0/vfs/3/history", 200, events);
    auto const shown = test::vfctl(api, {"vf", "history", "0000:01:00.0", "3"});
    EXPECT_EQ(
        shown.out,
        "EVENT  AT                        KIND     VM   ATTACHMENT  BECAUSE OF  DETAIL\n"
        "9      2026-01-31T12:00:02.000Z  settled  vm1  3f9c2b1d    8           no longer: VF 3 is "
        "gone\n"
        "8      2026-01-31T12:00:01.000Z  drift    vm1  3f9c2b1d    -           VF 3 is gone\n");
    EXPECT_EQ(test::vfctl(api, {"-j", "vf", "history", "0000:01:00.0", "3"}).out,
              events.dump() + "\n");
}

}  // namespace
}  // namespace vfmgr
