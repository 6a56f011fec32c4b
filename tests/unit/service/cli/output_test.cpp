// SPDX-License-Identifier: Apache-2.0
// vfctl's output: whether all of it was written, and its effect on a terminal.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <iostream>

#include "api/types/daemon.hpp"
#include "api/types/vm_info.hpp"
#include "tests/unit/service/cli/answering_api.hpp"
#include "tests/unit/service/cli/answers.hpp"

namespace vfmgr {
namespace {

using test::Api;
using testing::HasSubstr;

// As with "> /dev/full".
test::Ran into_a_full_disk(Api const& api, std::vector<std::string> arguments) {
    std::fflush(stdout);
    int const before = ::dup(STDOUT_FILENO);
    int const full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    EXPECT_GE(full, 0);
    ::dup2(full, STDOUT_FILENO);
    ::close(full);
    arguments.insert(arguments.begin(), {"--socket", api.socket()});
    test::Ran ran;
    testing::internal::CaptureStderr();
    ran.code = run_vfctl(std::move(arguments));
    ran.err = testing::internal::GetCapturedStderr();
    ::__fpurge(stdout);
    std::clearerr(stdout);
    std::cout.clear();  // its failure would silence later tests
    ::dup2(before, STDOUT_FILENO);
    ::close(before);
    return ran;
}

TEST(VfctlOutput, ThatCantBeWrittenIsAFailure) {
    Api api;
    api.on("GET /v1/pfs", 200, {{"items", nlohmann::json::array()}, {"next", nullptr}});
    EXPECT_EQ(test::vfctl(api, {"pf", "list"}).code, 0);
    auto const ran = into_a_full_disk(api, {"pf", "list"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.err, HasSubstr("could not be written to standard output"));
    EXPECT_THAT(ran.err, HasSubstr("ENOSPC"));
    EXPECT_EQ(into_a_full_disk(api, {"doctor", "--rules"}).code, 1);
    EXPECT_EQ(into_a_full_disk(api, {"--help"}).code, 1);
    EXPECT_EQ(into_a_full_disk(api, {"pf", "show", "ens9"}).code, 3) << "the first cause counts";
}

TEST(VfctlOutput, ATokenWhoseSecretIsLostIsRevoked) {
    Api api;
    api.on("POST /v1/tokens", 201, NewTokenView{{"t1", "viewer", "", {}, {}}, "vfm_abc"});
    api.on("DELETE /v1/tokens/t1", 204, nullptr);
    EXPECT_EQ(test::vfctl(api, {"token", "create"}).out, "vfm_abc\n");
    EXPECT_THAT(api.lines(), testing::Not(testing::Contains("DELETE /v1/tokens/t1")));
    auto const ran = into_a_full_disk(api, {"token", "create"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.err, HasSubstr("the secret of token t1 is lost"));
    EXPECT_THAT(ran.err, HasSubstr("is revoked"));
    EXPECT_THAT(api.lines(), testing::Contains("DELETE /v1/tokens/t1"));
}

TEST(VfctlOutput, OfAVmDoesNotSteerTheTerminal) {
    Api api;
    std::string const name = "db\x1b[2J\u202e\u009b1";
    VmInfo vm;
    vm.name = name;
    auto const vms = test::list<VmInfo>({vm});
    api.on("GET /v1/vms", 200, vms);
    for (auto const* const format : {"table", "csv", "name", "json", "yaml"}) {
        auto const out = test::vfctl(api, {"-o", format, "vm", "list"}).out;
        EXPECT_THAT(out, HasSubstr("db\\")) << format;
        for (auto const* const bad : {"\x1b", "\u202e", "\u009b"})
            EXPECT_EQ(out.find(bad), out.npos) << format;
    }
    EXPECT_EQ(nlohmann::json::parse(test::vfctl(api, {"-j", "vm", "list"}).out), vms);
    EXPECT_EQ(nlohmann::json::parse(test::vfctl(api, {"query", "GET", "/v1/vms"}).out), vms);
    EXPECT_THAT(test::vfctl(api, {"query", "GET", "/v1/vms"}).out,
                testing::Not(HasSubstr("\u202e")));
    api.refuse("GET /v1/pfs", {Problem::unavailable, "no \u202e\x1b", "do \u202e"});
    EXPECT_THAT(test::vfctl(api, {"pf", "list"}).err, testing::Not(HasSubstr("\u202e")));
}

// A newer vfmgrd may send more, but what vfctl shows it must understand.
TEST(VfctlOutput, IgnoresWhatItDoesNotKnowAndGuessesNothing) {
    nlohmann::json newer =
        test::operation(OperationState::running, {{"bind VF 0", StepState::done}});
    newer["of a newer vfmgrd"] = true;
    newer["steps"][0]["more"] = {{"of", "it"}};
    Api api;
    api.on("GET /v1/operations/op1", 200, newer);
    EXPECT_EQ(test::vfctl(api, {"op", "show", "op1"}).code, 0);
    newer["state"] = "suspended";
    api.on("GET /v1/operations/op2", 200, newer);
    auto const refused = test::vfctl(api, {"op", "show", "op2"});
    EXPECT_EQ(refused.code, 1);
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err, HasSubstr("the server's answer is not what was expected: /state"));
    EXPECT_THAT(refused.err, HasSubstr("vfctl and vfmgrd have the same version"));
    EXPECT_EQ(test::vfctl(api, {"-j", "op", "show", "op2"}).out, newer.dump() + "\n");
    EXPECT_THAT(test::vfctl(api, {"-o", "yaml", "op", "show", "op2"}).out,
                HasSubstr("state: suspended\n"));
}

TEST(VfctlOutput, HasTheChosenColumnsInsteadOfAPage) {
    Api api;
    auto operation = test::operation(OperationState::succeeded);
    operation.kind = OperationKind::detach;
    api.on("GET /v1/operations/op1", 200, operation);
    EXPECT_THAT(test::vfctl(api, {"op", "show", "op1"}).out, HasSubstr("operation:"));
    EXPECT_EQ(test::vfctl(api, {"op", "show", "op1", "-c", "state,Kind"}).out,
              "STATE      KIND\nsucceeded  detach\n");
    auto const unknown = test::vfctl(api, {"op", "show", "op1", "-c", "state,sort"});
    EXPECT_EQ(unknown.code, 2);
    EXPECT_EQ(unknown.out, "");
    EXPECT_THAT(unknown.err, HasSubstr("there is no column 'sort'"));
    EXPECT_THAT(unknown.err, HasSubstr("id, kind, state, subject"));
    for (auto const* const format : {"json", "yaml", "name"})
        EXPECT_EQ(test::vfctl(api, {"op", "show", "op1", "-c", "id", "-o", format}).code, 2);
}

// A change that succeeds and a failure that only concerns its output must not be one.
TEST(VfctlOutput, UnknownColumnsAreRefusedBeforeAnythingIsChanged) {
    Api api;
    api.on("GET /v1/attachments", 200,
           test::list<Attachment>({test::attachment("3f9c2b1d", "db1")}));
    api.on("GET /v1/pfs/0000:01:00.0/spec", 200, {{"mode", "manage"}});
    for (std::vector<std::string> command :
         {std::vector<std::string>{"attach", "db1", "--pf", "0000:01:00.0"},
          {"attach", "db1", "--pf", "0000:01:00.0", "--no-wait"},
          {"detach", "db1"},
          {"verify", "db1"},
          {"interop", "open", "db1"},
          {"pf", "set", "0000:01:00.0", "--num-vfs", "1"},
          {"pf", "gone", "0000:01:00.0"},
          {"vf", "lift-quarantine", "0000:01:00.0", "1"},
          {"rdma", "link", "delete", "rxe0"},
          {"firmware", "set", "0000:01:00.0", "SRIOV_EN=1"},
          {"token", "create"}}) {
        command.insert(command.end(), {"-c", "sort"});
        EXPECT_EQ(test::vfctl(api, command).code, 2) << command[0];
    }
    for (auto const& line : api.lines()) EXPECT_TRUE(line.starts_with("GET ")) << line;
}

TEST(VfctlOutput, OfAChangeThatLeavesNothingElseIsItsOperation) {
    Api api;
    auto const done = test::operation(OperationState::succeeded);
    api.on("POST /v1/pfs/0000:01:00.0/gone", 202, done);
    api.on("GET /v1/operations/op1 wait=60", 200, done);
    std::vector<std::string> const command{"pf", "gone", "0000:01:00.0"};
    EXPECT_EQ(test::vfctl(api, command).out, "");
    for (auto const& [format, out] :
         {std::pair{"name", std::string("op1\n")}, {"json", nlohmann::json(done).dump() + "\n"}}) {
        auto words = command;
        words.insert(words.end(), {"-o", format});
        EXPECT_EQ(test::vfctl(api, words).out, out);
    }
}

TEST(VfctlOutput, OfANewTokenAlwaysHasItsSecret) {
    Api api;
    api.on("POST /v1/tokens", 201, NewTokenView{{"t1", "viewer", "", {}, {}}, "vfm_abc"});
    for (auto const* const format : {"table", "csv", "json", "yaml"})
        EXPECT_THAT(test::vfctl(api, {"token", "create", "-o", format}).out, HasSubstr("vfm_abc"));
    EXPECT_THAT(test::vfctl(api, {"token", "create", "-c", "token,id"}).out, HasSubstr("vfm_abc"));
    auto const made = api.lines().size();
    EXPECT_EQ(test::vfctl(api, {"token", "create", "-o", "name"}).code, 2);
    EXPECT_EQ(test::vfctl(api, {"token", "create", "-c", "id"}).code, 2);
    EXPECT_EQ(api.lines().size(), made) << "nothing was sent";
}

// A terminal shows steps while they run; what they remarked is for everybody.
TEST(VfctlOutput, OfAnOperationEndsWithItsRemarks) {
    Api api;
    auto done = test::operation(OperationState::succeeded, {{"bind VF 0", StepState::done}});
    done.steps[0].remarks = {"igb refused link_state enable for VF 0 of enp1s0"};
    api.on("GET /v1/operations/op1 wait=60", 200, test::operation(OperationState::running));
    api.on("GET /v1/operations/op1 wait=60", 200, done);
    EXPECT_EQ(test::vfctl(api, {"op", "wait", "op1"}).err,
              "vfctl: igb refused link_state enable for VF 0 of enp1s0\n");
    EXPECT_EQ(test::vfctl(api, {"-q", "op", "wait", "op1"}).err, "");
}

}  // namespace
}  // namespace vfmgr
