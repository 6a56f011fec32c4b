// SPDX-License-Identifier: Apache-2.0
// /v1/rdma-links, on an engine with fakes.
#include <gmock/gmock.h>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;

struct RdmaLinkRoutes : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::unique_ptr<Bench> bench;

    void SetUp() override {
        kernel.change([](KernelView& view) {
            view.network.emplace();
            view.network->netdevs["bond0"].ethernet = true;
            view.network->netdevs["bond0"].up = true;
            view.network->rdma["others"].type = SoftRdmaType::siw;
        });
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path(), AskResponder{},
                                        system_clock(), TrustedNetdevs{"bond0"});
        bench->engine.control().publish(kernel.observe({}).value(), {}, {});
    }
    // "PUT rxe0 force=true", or "GET" for the list.
    http::Response ask(std::string const& method, std::string const& name,
                       std::string const& body = {},
                       std::map<std::string, std::string> query = {}) {
        auto const path = name.empty() ? "/v1/rdma-links" : "/v1/rdma-links/{name}";
        for (auto const& route : rdma_link_routes(bench->engine)) {
            if (route.path != path || route.method != method) continue;
            EXPECT_EQ(route.role, method == "GET" ? Role::viewer : Role::admin);
            Call call{{}, {}, {{"name", name}}};
            call.request.method = method;
            call.request.path = "/v1/rdma-links/" + name;
            call.request.body = body;
            call.request.query = std::move(query);
            std::promise<http::Response> promise;
            auto answer = promise.get_future();
            handle(bench->engine, route, call,
                   [&](http::Response response) { promise.set_value(std::move(response)); });
            return answer.get();
        }
        ADD_FAILURE() << "there is no such route";
        return {};
    }
    Operation ended(http::Response const& accepted) {
        return bench->ended(nlohmann::json::parse(accepted.body).at("id"));
    }
};

constexpr auto on_bond = R"({"type": "rxe", "ifname": "bond0"})";

TEST_F(RdmaLinkRoutes, MakeShowAndDeleteALink) {
    auto const accepted = ask("PUT", "rxe0", on_bond);
    ASSERT_EQ(accepted.status, 202) << accepted.body;
    EXPECT_EQ(ended(accepted).state, OperationState::succeeded);
    auto const shown = ask("GET", "rxe0");
    EXPECT_EQ(shown.status, 200);
    EXPECT_EQ(shown.headers.at("ETag"), "\"1\"");
    auto const link = from_json_text<RdmaLink>(shown.body).value();
    EXPECT_EQ(link.owner, RdmaLinkOwner::vfmgr);
    EXPECT_EQ(link.state, RdmaLinkState::present);
    auto const again = ask("PUT", "rxe0", on_bond);
    EXPECT_EQ(again.status, 200) << "it is so already";
    EXPECT_EQ(again.body, shown.body);

    auto const items = nlohmann::json::parse(ask("GET", "").body).at("items");
    ASSERT_EQ(items.size(), 2U);
    EXPECT_EQ(items[0].at("name"), "others");
    EXPECT_EQ(items[0].at("owner"), "other");
    EXPECT_EQ(ask("DELETE", "others").status, 409);

    EXPECT_EQ(ended(ask("DELETE", "rxe0")).state, OperationState::succeeded);
    EXPECT_EQ(ask("GET", "rxe0").status, 404);
    EXPECT_EQ(ask("DELETE", "rxe0").status, 404);
}

TEST_F(RdmaLinkRoutes, ADryRunIsThePlan) {
    auto const plan = ask("PUT", "rxe0", on_bond, {{"dry_run", "true"}});
    EXPECT_EQ(plan.status, 200);
    EXPECT_EQ(nlohmann::json::parse(plan.body).at("plan").at("steps")[0].at("sentence"),
              "create the rxe link rxe0 on bond0");
    EXPECT_EQ(ask("GET", "rxe0").status, 404);
}

TEST_F(RdmaLinkRoutes, RefuseWhatWillNotDo) {
    EXPECT_EQ(ask("PUT", "rxe0", R"({"type": "rxe")").status, 400);
    EXPECT_EQ(ask("PUT", "rxe0", R"({"type": "rxe"})").status, 422);
    auto const both = ask("PUT", "rxe0", R"({"type": "roce", "ifname": "../x"})");
    EXPECT_EQ(both.status, 422);
    EXPECT_EQ(nlohmann::json::parse(both.body)["violations"].size(), 2U);
    EXPECT_EQ(ask("PUT", "vfmgr_x", on_bond).status, 400);
    auto const untrusted = ask("PUT", "rxe0", R"({"type": "rxe", "ifname": "eno2"})");
    EXPECT_EQ(untrusted.status, 403);
    EXPECT_THAT(untrusted.body, HasSubstr("trusted_netdevs"));
    EXPECT_EQ(ask("DELETE", "rxe0", "", {{"force", "yes"}}).status, 400);
}

TEST_F(RdmaLinkRoutes, ForceIsPassedOn) {
    ended(ask("PUT", "rxe0", on_bond));
    kernel.change([](KernelView& view) {
        view.network->rdma.at("rxe0").users = {{{}, "nvme_rdma", "CM id"}};
    });
    bench->engine.control().publish(kernel.observe({}).value(), {}, {});
    auto const used = ask("DELETE", "rxe0");
    EXPECT_EQ(used.status, 409);
    EXPECT_THAT(used.body, HasSubstr("link_in_use"));
    EXPECT_EQ(ended(ask("DELETE", "rxe0", "", {{"force", "true"}})).state,
              OperationState::succeeded);
}

}  // namespace
}  // namespace vfmgr
