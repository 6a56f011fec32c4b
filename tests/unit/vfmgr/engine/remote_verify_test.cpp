// SPDX-License-Identifier: Apache-2.0
// Verifications that another host's responder answers, as the engine starts them.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

ResponderTarget far_target() {
    return {{"10.99.0.2", 8473}, std::string(64, 'a'), "vfr_secret"};
}

ResponderInfo far_info(char const* address = "192.168.100.200") {
    ResponderInfo info;
    info.version = "0.2.0";
    info.address = IpAddress::parse(address).value();
    info.echo_port = 8472;
    info.mac = MacAddress::parse("52:54:00:c0:00:02").value();
    info.mtu = 9000;
    info.rdma_device = "rxe0";
    return info;
}

struct RemoteVerify : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    Result<ResponderInfo> answer = far_info();
    std::vector<ResponderTarget> asked;
    std::unique_ptr<Bench> bench;
    std::string attachment;

    void SetUp() override {
        hypervisor.add(make_vm("vm1", vm1));
        ASSERT_TRUE(hypervisor.start(vm1));
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path(),
                                        [this](ResponderTarget const& target) {
                                            asked.push_back(target);
                                            return answer;
                                        });
        bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
        bench->run(Attach{ask()});
        attachment = bench->desired().attachments.begin()->first;
    }
    Operation verify() { return bench->run(Verify{attachment, 5, Profile::quick, far_target()}); }
};

TEST_F(RemoteVerify, TheRunKnowsWhoAnswers) {
    std::promise<PendingRun> begun;
    bench->engine.control().watch(Deadline::max(), [&](Control::State& state, Watch) {
        if (state.runs().empty()) return false;
        begun.set_value(state.runs().begin()->second);
        return true;
    });
    bench->guest_reports(Verdict::pass);
    auto const operation = verify();
    ASSERT_EQ(operation.state, OperationState::succeeded) << operation.problem->detail;
    auto const run = begun.get_future().get();
    ASSERT_TRUE(run.remote);
    EXPECT_EQ(run.remote->target, far_target());
    EXPECT_EQ(run.remote->info, far_info());
    EXPECT_EQ(asked, std::vector{far_target()});
    EXPECT_THAT(*bench->engine.snapshot().runs, IsEmpty());
}

TEST_F(RemoteVerify, AResponderThatRefusesEndsItBeforeTheVmIsAsked) {
    answer = fail(Problem::unauthorized, "the token is not the responder's", "give the right one");
    auto const operation = verify();
    EXPECT_EQ(operation.state, OperationState::failed);
    EXPECT_EQ(operation.problem->problem, Problem::unauthorized);
    EXPECT_EQ(operation.steps.back().state, StepState::failed);
    EXPECT_THAT(*bench->engine.snapshot().runs, IsEmpty());
}

TEST_F(RemoteVerify, AnAddressOfAnotherNetworkIsRefused) {
    answer = far_info("10.0.0.1");
    auto const operation = verify();
    ASSERT_TRUE(operation.problem);
    EXPECT_EQ(operation.problem->problem, Problem::invalid_request);
    EXPECT_THAT(operation.problem->detail,
                HasSubstr("10.0.0.1, which is not in the VM's network train (192.168.100.0/24)"));
}

TEST_F(RemoteVerify, TheTokenIsWrittenNowhere) {
    bench->guest_reports(Verdict::pass);
    verify();
    answer = fail(Problem::unavailable, "nobody there", "");
    verify();
    bench.reset();
    std::size_t files = 0;
    for (auto const& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
        if (!entry.is_regular_file()) continue;
        std::ifstream file(entry.path(), std::ios::binary);
        std::string const bytes(std::istreambuf_iterator<char>(file), {});
        EXPECT_EQ(bytes.find("vfr_secret"), std::string::npos) << entry.path();
        ++files;
    }
    EXPECT_GE(files, 1U);
}

}  // namespace
}  // namespace vfmgr
