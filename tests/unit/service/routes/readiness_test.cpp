// SPDX-License-Identifier: Apache-2.0
// GET /readyz, on an engine with fakes.
#include <gmock/gmock.h>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;

struct ReadinessRoute : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::unique_ptr<Bench> bench;

    void SetUp() override {
        hypervisor.says_when = false;
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
        bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    }
    // An unknown attachment makes the engine observe once more.
    void look() { EXPECT_FALSE(bench->submit(Detach{"00000000"})); }
    nlohmann::json ready(unsigned status) {
        for (auto const& route : root_routes()) {
            if (route.path != "/readyz") continue;
            http::Response answer;
            handle(bench->engine, route, {},
                   [&](http::Response response) { answer = std::move(response); });
            EXPECT_EQ(answer.status, status);
            return nlohmann::json::parse(answer.body);
        }
        ADD_FAILURE() << "there is no such route";
        return {};
    }
};

TEST_F(ReadinessRoute, TellsHowMuchIsNotAsItIsWanted) {
    EXPECT_EQ(ready(503).at("not_ready").at(0), "not observed yet");
    hypervisor.says_when = true;
    bench->engine.start_observing();
    look();
    EXPECT_EQ(ready(200).at("drift"), 0);
    kernel.change([](KernelView& view) {
        view.pfs.at(pf0).vfs.clear();
        view.pfs.at(pf0).info.num_vfs = 0;
    });
    look();
    EXPECT_EQ(ready(200).at("drift"), 1) << "which keeps nobody from asking";
}

TEST_F(ReadinessRoute, NamesWhatCantBeAsked) {
    bench->engine.start_observing();
    hypervisor.observe_error = Error{Problem::unavailable, "no libvirt", "start it"};
    look();
    EXPECT_EQ(ready(503).at("not_ready").at(0), "libvirt");
}

}  // namespace
}  // namespace vfmgr
