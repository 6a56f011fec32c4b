// SPDX-License-Identifier: Apache-2.0
// vfctl rdma link: iproute2's words, its API requests and its output.
#include <gmock/gmock.h>

#include "tests/unit/service/cli/answering_api.hpp"
#include "tests/unit/service/cli/answers.hpp"

namespace vfmgr {
namespace {

using test::Api;
using test::vfctl;
using testing::HasSubstr;

nlohmann::json const listed_links = nlohmann::json::parse(R"({"next": null, "items": [
    {"name": "far", "owner": "vfmgr", "state": "waiting", "detail": "waits for eno9",
     "revision": 1, "desired": {"type": "rxe", "ifname": "eno9"}, "observed": null},
    {"name": "rxe0", "owner": "other", "state": "present", "detail": "", "revision": 0,
     "desired": null, "observed": {"type": "rxe", "ifname": "bond0", "active": true,
     "users": [{"pid": 812, "comm": "ibv_rc_pingpong", "holds": "queue pair"},
               {"pid": null, "comm": "nvme_rdma", "holds": "CM id"}], "users_unknown": null}}]})");

Operation done_operation() {
    return test::operation(OperationState::succeeded,
                           {{"create the rxe link rxe0 on bond0",
                             StepState::done,
                             {"rxe0 answers any machine that reaches UDP port 4791"}}});
}

TEST(VfctlRdmaLink, ListsWhatIsAndWhoUsesIt) {
    Api api;
    api.on("GET /v1/rdma-links", 200, listed_links);
    auto const table = vfctl(api, {"rdma", "link", "list"});
    EXPECT_EQ(table.code, 0) << table.err;
    EXPECT_THAT(table.out, HasSubstr("ibv_rc_pingpong(812), nvme_rdma(kernel)"));
    EXPECT_THAT(table.out, HasSubstr("waits for eno9"));
    EXPECT_EQ(vfctl(api, {"rdma", "link", "list", "-o", "name"}).out, "far\nrxe0\n");
    EXPECT_EQ(vfctl(api, {"-j", "rdma", "link", "list"}).out, listed_links.dump() + "\n");
    // This is what doctor parses, see parse_vfmgr_links().
    EXPECT_THAT(vfctl(api, {"-q", "-o", "csv", "--no-headers", "rdma", "link", "list"}).out,
                testing::StartsWith("far,rxe,eno9,waiting,,vfmgr,"));
}

TEST(VfctlRdmaLink, AddsInTheWordsOfIproute2) {
    Api api;
    api.on("PUT /v1/rdma-links/rxe0", 202, done_operation());
    api.on("GET /v1/operations/op1 wait=60", 200, done_operation());
    auto const added =
        vfctl(api, {"rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "bond0"});
    EXPECT_EQ(added.code, 0) << added.err;
    EXPECT_THAT(added.err, HasSubstr("UDP port 4791"));
    EXPECT_EQ(nlohmann::json::parse(api.asked("PUT /v1/rdma-links/rxe0").body),
              (nlohmann::json{{"type", "rxe"}, {"ifname", "bond0"}}));
    for (auto const& wrong : {std::vector<std::string>{"rxe0", "type", "roce", "netdev", "bond0"},
                              {"rxe0", "kind", "rxe", "netdev", "bond0"},
                              {"rxe0", "type", "rxe", "dev", "bond0"},
                              {"rxe0", "type", "rxe"},
                              {"../x", "type", "rxe", "netdev", "bond0"}}) {
        std::vector<std::string> line{"rdma", "link", "add"};
        line.insert(line.end(), wrong.begin(), wrong.end());
        EXPECT_EQ(vfctl(api, line).code, 2);
    }
}

TEST(VfctlRdmaLink, DeletesAndNamesWhoeverUsesIt) {
    Api api;
    api.refuse("DELETE /v1/rdma-links/rxe0",
               {Problem::link_in_use, "RDMA link rxe0 is in use: rping (pid 7) has a CM id",
                "end them first: kill 7"});
    auto const used = vfctl(api, {"rdma", "link", "delete", "rxe0"});
    EXPECT_EQ(used.code, 4);
    EXPECT_THAT(used.err, HasSubstr("rping (pid 7)"));
    api.on("DELETE /v1/rdma-links/rxe0 force=true", 204, nullptr);
    EXPECT_EQ(vfctl(api, {"rdma", "link", "delete", "rxe0", "--force"}).code, 0);
    EXPECT_EQ(vfctl(api, {"rdma", "link", "delete", "a/b"}).code, 2);
}

TEST(VfctlRdmaLink, ADryRunPrintsThePlan) {
    Api api;
    api.on("PUT /v1/rdma-links/rxe0 dry_run=true", 200,
           {{"plan",
             {{"steps", {{{"sentence", "create the rxe link rxe0 on bond0"}}}},
              {"blast_radius", nlohmann::json::array()},
              {"notes", {"see doctor"}}}}});
    auto const plan =
        vfctl(api, {"--dry-run", "rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "bond0"});
    EXPECT_EQ(plan.code, 0) << plan.err;
    EXPECT_THAT(plan.out, HasSubstr("1. create the rxe link rxe0 on bond0"));
    EXPECT_THAT(plan.out, HasSubstr("see doctor"));
}

}  // namespace
}  // namespace vfmgr
