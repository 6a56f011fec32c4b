// SPDX-License-Identifier: Apache-2.0
// GET /v1/attachments/{id}/certificate, on an engine with fakes.
#include <gmock/gmock.h>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;

struct CertificateRoute : testing::Test {
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
    http::Response certificate(std::string const& id) {
        for (auto const& route : attachment_routes(bench->engine)) {
            if (route.path != "/v1/attachments/{id}/certificate") continue;
            EXPECT_EQ(route.method, "GET");
            EXPECT_EQ(route.role, Role::viewer);
            std::promise<http::Response> promise;
            auto answer = promise.get_future();
            handle(bench->engine, route, {{}, {}, {{"id", id}}},
                   [&](http::Response response) { promise.set_value(std::move(response)); });
            return answer.get();
        }
        ADD_FAILURE() << "there is no such route";
        return {};
    }
};

TEST_F(CertificateRoute, AnswersWhenTheAttachmentIsGone) {
    bench->run(Attach{ask()});
    auto const id = bench->desired().attachments.begin()->first;
    auto const going_on = certificate(id);
    EXPECT_EQ(going_on.status, 404);
    EXPECT_THAT(going_on.body, HasSubstr("vfctl detach " + id));
    auto const released = bench->run(Detach{id});
    auto const answer = certificate(id);
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(nlohmann::json::parse(answer.body), nlohmann::json(*released.certificate));
}

TEST_F(CertificateRoute, OfNoAttachmentIsNotFound) {
    auto const answer = certificate("0000000f");
    EXPECT_EQ(answer.status, 404);
    EXPECT_THAT(answer.body, HasSubstr("there is no attachment 0000000f"));
}

}  // namespace
}  // namespace vfmgr
