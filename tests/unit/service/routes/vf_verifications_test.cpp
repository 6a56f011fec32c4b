// SPDX-License-Identifier: Apache-2.0
// GET /v1/pfs/{pci}/vfs/{index}/verifications and /history, on an engine with fakes.
#include <gmock/gmock.h>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;

struct VfVerifications : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::unique_ptr<Bench> bench;

    void SetUp() override {
        hypervisor.add(make_vm("vm1", vm1));
        ASSERT_TRUE(hypervisor.start(vm1));
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
        bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    }
    http::Response ask(std::string const& index, std::string const& what = "verifications") {
        for (auto const& route : pf_routes(bench->engine)) {
            if (route.path != "/v1/pfs/{pci}/vfs/{index}/" + what) continue;
            std::promise<http::Response> promise;
            auto answer = promise.get_future();
            handle(bench->engine, route, {{}, {}, {{"pci", to_string(pf0)}, {"index", index}}},
                   [&](http::Response response) { promise.set_value(std::move(response)); });
            return answer.get();
        }
        ADD_FAILURE() << "there is no such route";
        return {};
    }
};

TEST_F(VfVerifications, AreThereWhenTheAttachmentIsGone) {
    EXPECT_EQ(nlohmann::json::parse(ask("0").body).at("items").size(), 0U);
    bench->run(Attach{example::ask()});
    auto const attachment = bench->desired().attachments.begin()->first;
    bench->guest_reports(Verdict::pass);
    bench->run(Verify{attachment, 5});
    bench->run(Detach{attachment});
    auto const answer = ask("0");
    EXPECT_EQ(answer.status, 200);
    auto const items = nlohmann::json::parse(answer.body).at("items");
    ASSERT_EQ(items.size(), 1U);
    EXPECT_EQ(items[0].at("attachment"), attachment);
    EXPECT_EQ(items[0].at("tests")[0].at("name"), "rdma_write") << "the whole run";
    EXPECT_EQ(nlohmann::json::parse(ask("1").body).at("items").size(), 0U);
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(0)});
    EXPECT_EQ(nlohmann::json::parse(ask("0").body).at("items").size(), 1U) << "also when the VF is";
}

TEST_F(VfVerifications, OfNoVfAreRefused) {
    EXPECT_EQ(ask("7").status, 404);
    EXPECT_EQ(ask("7", "history").status, 404) << "the PF's own events are of no VF";
    EXPECT_EQ(ask("one").status, 400);
    EXPECT_EQ(ask("one", "history").status, 400);
}

TEST_F(VfVerifications, TheHistoryOutlivesAttachmentAndVf) {
    bench->run(Attach{example::ask()});
    auto const attachment = bench->desired().attachments.begin()->first;
    bench->run(Detach{attachment});
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(0)});
    auto const answer = ask("0", "history");
    ASSERT_EQ(answer.status, 200) << answer.body;
    auto const items = nlohmann::json::parse(answer.body).at("items");
    ASSERT_EQ(items.size(), 4U) << items.dump(1);
    EXPECT_EQ(items[0].at("kind"), "pf_configured");
    EXPECT_EQ(items[1].at("kind"), "detached");
    EXPECT_EQ(items[1].at("certificate").at("attachment"), attachment);
    EXPECT_EQ(items[2].at("kind"), "attached");
    EXPECT_EQ(items[2].at("vf"), 0);
    EXPECT_TRUE(items[3].at("vf").is_null()) << "the PF's";
}

}  // namespace
}  // namespace vfmgr
