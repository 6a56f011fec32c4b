// SPDX-License-Identifier: Apache-2.0
// GET /readyz, on an engine with fakes.
#include <gmock/gmock.h>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "tests/unit/file_size_limit.hpp"
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
            EXPECT_EQ(route.role, anyone);
            EXPECT_EQ(answer.status, status);
            EXPECT_EQ(answer.headers.contains("Retry-After"), status == 503);
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

// Nothing is written to find out.
TEST_F(ReadinessRoute, NamesAStoreThatTakesNoChanges) {
    hypervisor.says_when = true;
    bench->engine.start_observing();
    look();
    EXPECT_EQ(ready(200).at("not_ready").size(), 0U);
    auto const change = ReplacePfSpec{pf0, spec_with_vfs(3)};
    {
        test::FileSizeLimit const limit(0);
        EXPECT_EQ(bench->submit(change).error().problem, Problem::unavailable);
        bench->engine.control().finish_offers();
        EXPECT_EQ(ready(503).at("not_ready"), nlohmann::json::array({"store"}));
        bench->engine.try_store_again();
        bench->engine.control().finish_offers();
        EXPECT_EQ(ready(503).at("not_ready").size(), 1U) << "it is full yet";
    }
    EXPECT_EQ(ready(503).at("not_ready").size(), 1U) << "nobody knows yet";
    bench->engine.try_store_again();
    bench->engine.control().finish_offers();
    EXPECT_EQ(ready(200).at("not_ready").size(), 0U);
    EXPECT_TRUE(bench->submit(change));
}

}  // namespace
}  // namespace vfmgr
