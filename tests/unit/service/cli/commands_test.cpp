// SPDX-License-Identifier: Apache-2.0
// vfctl against an API that answers from a list: its requests, its output and its exit status.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/service/cli/answering_api.hpp"
#include "tests/unit/service/cli/answers.hpp"

namespace vfmgr {
namespace {

using test::Api;
using test::vfctl;
using testing::HasSubstr;

nlohmann::json const pf = [] {
    auto view = test::pf("0000:01:00.0", "ens1");
    view.pf.info.num_vfs = 2;
    view.pf.info.total_vfs = 7;
    view.pf.info.driver = "igb";
    return view;
}();
nlohmann::json const pfs = {{"items", {pf}}, {"next", nullptr}};
nlohmann::json const db1 = test::list<Attachment>({test::attachment("3f9c2b1d", "db1")});

nlohmann::json operation(std::string const& state, std::string const& subject) {
    auto value = test::operation(enum_value<OperationState>(state).value(),
                                 {{"bind VF 0", StepState::done}});
    value.kind = OperationKind::attach;
    value.subject = subject;
    return value;
}

nlohmann::json with_run(Verification const& run) {
    auto value = test::attachment("3f9c2b1d", "db1");
    value.verification = run;
    return value;
}

TEST(Vfctl, ListsInEveryFormat) {
    Api api;
    api.on("GET /v1/pfs", 200, pfs);
    auto const table = vfctl(api, {"pf", "list"});
    EXPECT_EQ(table.code, 0);
    EXPECT_EQ(table.err, "");
    EXPECT_THAT(table.out, HasSubstr("PF            IFNAME  DRIVER"));
    EXPECT_THAT(table.out, HasSubstr("0000:01:00.0  ens1    igb"));
    EXPECT_EQ(vfctl(api, {"pf", "list", "-o", "name"}).out, "0000:01:00.0\n");
    EXPECT_EQ(vfctl(api, {"-j", "pf", "list"}).out, pfs.dump() + "\n");
    EXPECT_THAT(vfctl(api, {"pf", "list", "-o", "csv", "--no-headers"}).out,
                testing::StartsWith("0000:01:00.0,ens1,igb,2,7,"));
}

TEST(Vfctl, WhoAskedTooOftenWaitsAndAsksAgain) {
    Api api;
    nlohmann::json const problem{{"code", "limit_exceeded"}, {"detail", "too often"}};
    api.on("DELETE /v1/tokens/t", 429, problem, {{"Retry-After", "1"}});
    api.on("DELETE /v1/tokens/t", 204, nullptr);
    EXPECT_EQ(vfctl(api, {"token", "revoke", "t"}).code, 0);
    EXPECT_EQ(api.all_asked("DELETE /v1/tokens/t").size(), 2U);
    api.on("DELETE /v1/tokens/u", 429, problem, {{"Retry-After", "3600"}});
    auto const given_up = vfctl(api, {"token", "revoke", "u"});
    EXPECT_EQ(given_up.code, 4);
    EXPECT_THAT(given_up.err, HasSubstr("too often"));
}

TEST(Vfctl, ShowsTheAudit) {
    Api api;
    api.on("GET /v1/audit limit=1", 200,
           {{"items",
             {{{"at", "2026-01-31T12:00:00.000Z"},
               {"who", "address:192.0.2.9"},
               {"action", "requests"},
               {"subject", ""},
               {"outcome", "401"},
               {"refused", true},
               {"requests", 5214},
               {"request_id", ""},
               {"from", "address:192.0.2.9"},
               {"plan_digest", nullptr},
               {"operation", "0011aabb"}}}},
            {"next", "more"}});
    auto const shown = vfctl(api, {"audit", "--limit", "1"});
    EXPECT_EQ(shown.code, 0) << shown.err;
    EXPECT_THAT(shown.out, HasSubstr("address:192.0.2.9"));
    EXPECT_THAT(shown.out, HasSubstr("5214"));
    EXPECT_THAT(shown.out, HasSubstr("0011aabb"));
    EXPECT_EQ(vfctl(api, {"audit", "--limit", "0"}).code, 2);
}

TEST(Vfctl, ShowsAPfByItsNetdev) {
    Api api;
    api.on("GET /v1/pfs", 200, pfs);
    api.on("GET /v1/pfs/0000:01:00.0", 200, pf);
    auto const shown = vfctl(api, {"pf", "show", "ens1"});
    EXPECT_EQ(shown.code, 0);
    EXPECT_THAT(shown.out, HasSubstr("VFs:             2 of 7\n"));
    EXPECT_EQ(vfctl(api, {"pf", "show", "ens9"}).code, 3);
    EXPECT_EQ(vfctl(api, {"pf", "show", "01:00.0", "-j"}).out, pf.dump() + "\n");
}

TEST(Vfctl, PfSetSendsTheChangedSpecWithItsRevision) {
    Api api;
    api.on("GET /v1/pfs/0000:01:00.0/spec", 200, {{"mode", "enforce"}, {"num_vfs", 2}},
           {{"ETag", "\"7\""}});
    api.on("PUT /v1/pfs/0000:01:00.0/spec", 202, operation("running", "/v1/pfs/0000:01:00.0"));
    api.on("GET /v1/operations/op1 wait=60", 200, operation("running", "/v1/pfs/0000:01:00.0"));
    api.on("GET /v1/operations/op1 wait=60", 200, operation("succeeded", "/v1/pfs/0000:01:00.0"));
    api.on("GET /v1/pfs/0000:01:00.0", 200, pf);
    auto const ran =
        vfctl(api, {"pf", "set", "0000:01:00.0", "--num-vfs", "4", "--vf-driver", "vfio-pci"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.err, "vfctl: 0000:01:00.0 is configured\n") << "no progress without a terminal";
    auto const put = api.asked("PUT /v1/pfs/0000:01:00.0/spec");
    EXPECT_EQ(put.headers.at("if-match"), "\"7\"");
    auto const sent = nlohmann::json::parse(put.body);
    EXPECT_EQ(sent["mode"], "enforce");
    EXPECT_EQ(sent["num_vfs"], 4);
    EXPECT_EQ(sent["vf_driver"], "vfio-pci");
}

nlohmann::json spec_with(int num_vfs) {
    return {{"mode", "manage"}, {"num_vfs", num_vfs}};
}

Error const changed{Problem::precondition_failed, "the spec has another revision now", "read it"};

// Refused at once, and by the operation's own check of the revision: VFs were added.
TEST(Vfctl, PfSetEditsAgainWhatSomebodyElseChangedMeanwhile) {
    Api api;
    auto const path = std::string("/v1/pfs/0000:01:00.0/spec");
    api.on("GET " + path, 200, spec_with(1), {{"ETag", "\"1\""}});
    api.on("GET " + path, 200, spec_with(2), {{"ETag", "\"2\""}});
    api.on("GET " + path, 200, spec_with(3), {{"ETag", "\"3\""}});
    api.refuse("PUT " + path, changed);
    api.on("PUT " + path, 202, operation("queued", "/v1/pfs/0000:01:00.0"));
    api.on("PUT " + path, 202, operation("queued", "/v1/pfs/0000:01:00.0"));
    auto failed = operation("failed", "/v1/pfs/0000:01:00.0");
    failed["problem"] = {{"code", "precondition_failed"}, {"detail", "changed"}};
    api.on("GET /v1/operations/op1 wait=60", 200, failed);
    api.on("GET /v1/operations/op1 wait=60", 200, operation("succeeded", "/v1/pfs/0000:01:00.0"));
    api.on("GET /v1/pfs/0000:01:00.0", 200, pf);
    auto const ran = vfctl(api, {"pf", "set", "0000:01:00.0", "--vf-driver", "vfio-pci"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    auto const puts = api.all_asked("PUT " + path);
    ASSERT_EQ(puts.size(), 3U);
    EXPECT_EQ(puts[2].headers.at("if-match"), "\"3\"");
    auto const sent = nlohmann::json::parse(puts[2].body);
    EXPECT_EQ(sent["num_vfs"], 3);
    EXPECT_EQ(sent["vf_driver"], "vfio-pci");
}

TEST(Vfctl, PfSetGivesUpWhenSomebodyElseIsAlwaysFaster) {
    Api api;
    auto const path = std::string("/v1/pfs/0000:01:00.0/spec");
    api.on("GET " + path, 200, spec_with(1), {{"ETag", "\"1\""}});
    api.refuse("PUT " + path, changed);
    auto const ran = vfctl(api, {"pf", "set", "0000:01:00.0", "--num-vfs", "2"});
    EXPECT_EQ(ran.code, 4);
    EXPECT_THAT(ran.err, HasSubstr("the spec has another revision now"));
    EXPECT_EQ(api.all_asked("PUT " + path).size(), 16U);
}

TEST(Vfctl, PfSetManagesWhatNobodyManaged) {
    Api api;
    api.on("GET /v1/pfs/0000:01:00.0/spec", 200, {{"mode", "observe"}}, {{"ETag", "\"0\""}});
    api.on("PUT /v1/pfs/0000:01:00.0/spec dry_run=true", 200,
           {{"plan", {{"steps", {{{"sentence", "create 4 VFs"}}}}}}});
    auto const ran = vfctl(api, {"pf", "set", "0000:01:00.0", "--num-vfs", "4", "--dry-run"});
    EXPECT_EQ(ran.out, "would:\n  1. create 4 VFs\n");
    auto const body = api.asked("PUT /v1/pfs/0000:01:00.0/spec dry_run=true").body;
    EXPECT_EQ(nlohmann::json::parse(body)["mode"], "manage");
    vfctl(api, {"pf", "set", "0000:01:00.0", "--mode", "observe"});
    EXPECT_EQ(nlohmann::json::parse(api.asked("PUT /v1/pfs/0000:01:00.0/spec").body)["mode"],
              "observe");
}

TEST(Vfctl, PfSetTakesAWholeFile) {
    Api api;
    std::ofstream(api.file("spec.json")) << R"({"num_vfs": 1})";
    api.on("PUT /v1/pfs/0000:01:00.0/spec", 200, {{"mode", "manage"}});
    api.on("GET /v1/pfs/0000:01:00.0", 200, pf);
    auto const ran = vfctl(api, {"pf", "set", "0000:01:00.0", "-f", api.file("spec.json")});
    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.err, "vfctl: 0000:01:00.0 is already configured like this\n");
    EXPECT_EQ(api.asked("PUT /v1/pfs/0000:01:00.0/spec").body, R"({"num_vfs":1})");
    EXPECT_EQ(vfctl(api, {"pf", "set", "0000:01:00.0", "-f", api.file("none")}).code, 2);
    EXPECT_EQ(vfctl(api, {"pf", "set", "0000:01:00.0", "-f", "a", "--num-vfs", "1"}).code, 2);
}

TEST(Vfctl, AttachFollowsAndShowsTheAttachment) {
    Api api;
    api.on("GET /v1/pfs", 200, pfs);
    api.on("POST /v1/attachments", 202, operation("queued", "/v1/attachments/3f9c2b1d"));
    api.on("GET /v1/operations/op1 wait=60", 200,
           operation("succeeded", "/v1/attachments/3f9c2b1d"));
    api.on("GET /v1/attachments/3f9c2b1d", 200, [] {
        auto attached = test::attachment("3f9c2b1d", "db1");
        attached.settings.mac = MacAddress::parse("02:00:00:00:00:01").value();
        return attached;
    }());
    auto const ran = vfctl(
        api, {"attach", "db1", "--pf", "ens1", "--network", "lab", "--verify", "--trust", "on"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("MAC:             02:00:00:00:00:01\n"));
    auto const post = api.asked("POST /v1/attachments");
    EXPECT_EQ(post.headers.at("idempotency-key").size(), 36u);
    auto const sent = nlohmann::json::parse(post.body);
    EXPECT_EQ(sent["pf"], "0000:01:00.0");
    EXPECT_EQ(sent["verify"], "required");
    EXPECT_EQ(sent["settings"], (nlohmann::json{{"trust", true}}));
    auto const quiet = vfctl(api, {"attach", "db1", "--pf", "ens1", "-q", "-j"});
    EXPECT_EQ(quiet.err, "");
    EXPECT_EQ(nlohmann::json::parse(quiet.out)["id"], "3f9c2b1d");
}

TEST(Vfctl, AFailedOperationIsAProblemWithItsExitCode) {
    Api api;
    auto failed = operation("failed", "/v1/attachments/x");
    failed["problem"] = Error{Problem::vf_in_use, "VF 0 of ens1 is attached to db2", "detach it"};
    api.on("POST /v1/attachments", 202, operation("queued", "/v1/attachments/x"));
    api.on("GET /v1/operations/op1 wait=60", 200, failed);
    auto const ran = vfctl(api, {"attach", "db1", "--pf", "0000:01:00.0", "-q"});
    EXPECT_EQ(ran.code, 4);
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(ran.err, "vfctl: VF 0 of ens1 is attached to db2\nremedy: detach it\n");
}

TEST(Vfctl, NoWaitPrintsTheOperation) {
    Api api;
    api.on("POST /v1/attachments", 202, operation("queued", "/v1/attachments/x"));
    EXPECT_EQ(vfctl(api, {"attach", "db1", "--pf", "0000:01:00.0", "--no-wait"}).out, "op1\n");
    auto const json = vfctl(api, {"attach", "db1", "--pf", "0000:01:00.0", "--no-wait", "-j"});
    EXPECT_EQ(nlohmann::json::parse(json.out)["id"], "op1");
    EXPECT_THAT(api.lines(), testing::Not(testing::Contains(HasSubstr("operations"))));
}

TEST(Vfctl, DetachFindsTheAttachmentOfAVm) {
    Api api;
    api.on("GET /v1/attachments", 200, db1);
    api.on("DELETE /v1/attachments/3f9c2b1d", 202, operation("queued", "/v1/attachments/x"));
    api.on("GET /v1/operations/op1 wait=60", 200, operation("succeeded", "/v1/attachments/x"));
    auto const ran = vfctl(api, {"detach", "db1"});
    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr("attachment 3f9c2b1d ended, its VF is gone"));
    EXPECT_EQ(vfctl(api, {"detach", "db9"}).code, 3);
}

TEST(Vfctl, AFailedVerificationShowsItsReport) {
    Api api;
    api.on("GET /v1/attachments", 200, db1);
    auto failed = operation("failed", "/v1/attachments/3f9c2b1d");
    failed["problem"] = Error{Problem::guest_refused, "rdma_write failed", "look at the VM"};
    api.on("POST /v1/attachments/3f9c2b1d/verifications", 202, operation("queued", ""));
    api.on("GET /v1/operations/op1 wait=60", 200, failed);
    Verification run;
    run.run = "r1";
    run.verdict = Verdict::fail;
    run.tests = {{"rdma_write", Verdict::fail, Judge::host, 0, 0, {}, "", ""}};
    api.on("GET /v1/attachments/3f9c2b1d", 200, with_run(run));
    auto const ran = vfctl(api, {"verify", "db1", "--verify-timeout", "30"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.out, HasSubstr("rdma_write  fail"));
    EXPECT_EQ(api.asked("POST /v1/attachments/3f9c2b1d/verifications").body,
              R"({"timeout_seconds":30})");
}

TEST(Vfctl, AVerificationByAnotherHostSaysWhoAnswered) {
    Api api;
    test::TemporaryFolder const folder;
    std::ofstream(folder.file("token")) << "vfr_1\n";
    api.on("GET /v1/attachments", 200, db1);
    api.on("POST /v1/attachments/3f9c2b1d/verifications", 202, operation("queued", ""));
    api.on("GET /v1/operations/op1 wait=60", 200,
           operation("succeeded", "/v1/attachments/3f9c2b1d"));
    Verification run;
    run.run = "r1";
    run.verdict = Verdict::pass;
    run.path = TestPath::wire;
    run.responder = "far:8473";
    api.on("GET /v1/attachments/3f9c2b1d", 200, with_run(run));
    std::vector<std::string> const words{"verify", "db1", "--responder", "far"};
    EXPECT_EQ(vfctl(api, words).code, 2) << "without fingerprint and token";
    auto all = words;
    for (auto const& word : {std::string("--responder-fingerprint"), std::string("6f1c"),
                             std::string("--responder-token-file"), folder.file("token")})
        all.push_back(word);
    auto const ran = vfctl(api, all);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("far:8473"));
    EXPECT_THAT(ran.out, HasSubstr("wire"));
    EXPECT_EQ(api.asked("POST /v1/attachments/3f9c2b1d/verifications").body,
              R"({"responder":{"fingerprint":"6f1c","host":"far","port":8473,"token":"vfr_1"}})");
}

TEST(Vfctl, DryRunNeverWrites) {
    Api api;
    api.on("GET /v1/attachments", 200, db1);
    for (std::vector<std::string> command :
         {std::vector<std::string>{"attach", "db1", "--pf", "0000:01:00.0"},
          {"detach", "db1"},
          {"verify", "db1"},
          {"pf", "set", "0000:01:00.0", "--num-vfs", "1"},
          {"vf", "lift-quarantine", "0000:01:00.0", "1"},
          {"token", "create"},
          {"token", "revoke", "x"},
          {"token", "rotate", "x"},
          {"query", "DELETE", "/v1/attachments/3f9c2b1d"}}) {
        command.push_back("--dry-run");
        vfctl(api, command);
    }
    for (auto const& line : api.lines())
        EXPECT_TRUE(line.starts_with("GET ") || line.ends_with("dry_run=true")) << line;
    EXPECT_GE(api.lines().size(), 6u);
}

TEST(Vfctl, QueryIsTheApiItself) {
    Api api;
    api.on("PUT /v1/x a=b", 200, {{"ok", true}});
    auto const put = vfctl(api, {"query", "PUT", "/v1/x?a=b", "{}", "--header", "If-Match: \"3\""});
    EXPECT_EQ(put.code, 0);
    EXPECT_EQ(put.out, R"({"ok":true})");
    EXPECT_EQ(api.asked("PUT /v1/x a=b").headers.at("if-match"), "\"3\"");
    api.refuse("GET /v1/y", {Problem::forbidden, "no", "ask"});
    auto const refused = vfctl(api, {"query", "GET", "/v1/y"});
    EXPECT_EQ(refused.code, 5);
    EXPECT_EQ(nlohmann::json::parse(refused.out)["code"], "forbidden");
}

TEST(Vfctl, ProblemsHaveViolationsAndCauses) {
    Api api;
    Error error{Problem::invalid_request, "/vlan/id must be less", "correct it"};
    error.violations.push_back({"/vlan/id", "must be from 0 to 4094"});
    error.causes.push_back({"write sriov_numvfs", "EBUSY", "busy"});
    api.refuse("GET /v1/pfs", error);
    auto const ran = vfctl(api, {"pf", "list"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.err,
              "vfctl: /vlan/id must be less\n"
              "  /vlan/id must be from 0 to 4094\n"
              "  because: write sriov_numvfs: EBUSY: busy\n"
              "remedy: correct it\n");
}

TEST(Vfctl, ExitCodesOfTheCommandLineAndTheConnection) {
    Api api;
    EXPECT_EQ(vfctl(api, {}).code, 2);
    EXPECT_EQ(vfctl(api, {"nonsense"}).code, 2);
    EXPECT_EQ(vfctl(api, {"attach", "db1"}).code, 2);
    EXPECT_EQ(vfctl(api, {"pf", "list", "-o", "xml"}).code, 2);
    EXPECT_EQ(vfctl(api, {"--help"}).code, 0);
    EXPECT_EQ(run_vfctl({"--url", "http://host", "pf", "list"}), 2);
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_vfctl({"--socket", api.file("none"), "pf", "list"}), 6);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("systemctl start vfmgrd"));
    api.on("GET /v1/vms", 200, "not a list");
    EXPECT_EQ(vfctl(api, {"vm", "list"}).code, 1);
}

}  // namespace
}  // namespace vfmgr
