// SPDX-License-Identifier: Apache-2.0
// The routes of cards' firmware, on an engine with fakes; their answers have the members of the
// documented examples.
#include <gmock/gmock.h>

#include <fstream>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "tests/unit/repository.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using nlohmann::json;

struct FirmwareRoutes : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::unique_ptr<Bench> bench;
    std::unique_ptr<FirmwareQuery> look;

    void SetUp() override {
        hypervisor.add(make_vm("vm1", vm1));
        ASSERT_TRUE(hypervisor.start(vm1));
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
        bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
        FirmwareCard card;
        card.pci = pf0;
        card.functions = {pf0, {0, 1, 0, 1}};
        card.current = card.next = FirmwareSettings{true, 8, PortType::eth, {}, {}};
        card.boot_id = "boot 1";
        kernel.change_firmware([&](std::vector<FirmwareCard>& cards) { cards = {card}; });
        look = std::make_unique<FirmwareQuery>([this] { return kernel.read_firmware({}); });
    }
    http::Response ask(std::string const& method, std::string const& path, std::string const& pci,
                       std::string const& body = "", bool dry_run = false) {
        http::Request request;
        request.method = method;
        request.path = path;
        request.body = body;
        if (dry_run) request.query["dry_run"] = "true";
        for (auto const& route : firmware_routes(bench->engine, *look)) {
            if (route.path != path || route.method != method) continue;
            std::promise<http::Response> promise;
            auto answer = promise.get_future();
            handle(bench->engine, route, {request, {}, {{"pci", pci}}},
                   [&](http::Response response) { promise.set_value(std::move(response)); });
            return answer.get();
        }
        ADD_FAILURE() << "there is no such route";
        return {};
    }
    http::Response show(std::string const& pci) {
        return ask("GET", "/v1/pfs/{pci}/firmware", pci);
    }
    http::Response change(std::string const& body, bool dry_run = false) {
        return ask("PUT", "/v1/pfs/{pci}/firmware", to_string(pf0), body, dry_run);
    }
};

std::set<std::string> members(json const& document) {
    std::set<std::string> names;
    for (auto const& [name, value] : document.items()) names.insert(name);
    return names;
}

constexpr auto sixteen = R"({"settings": {"NUM_OF_VFS": 16}})";

TEST_F(FirmwareRoutes, ShowACardByAnyOfItsFunctions) {
    std::ifstream file(test::repository() / "api/examples/firmware.json");
    auto const documented = json::parse(file, nullptr, false);
    for (auto const* const pci : {"0000:01:00.0", "0000:01:00.1"}) {
        auto const shown = show(pci);
        ASSERT_EQ(shown.status, 200) << shown.body;
        auto const card = json::parse(shown.body);
        EXPECT_EQ(members(card), members(documented));
        EXPECT_EQ(card.at("pci"), "0000:01:00.0");
        EXPECT_EQ(card.at("pending"), "none");
    }
    auto const list = json::parse(ask("GET", "/v1/host/firmware", "").body);
    EXPECT_EQ(list.at("items").size(), 1U);
}

TEST_F(FirmwareRoutes, KnowWhatIsNoCard) {
    EXPECT_EQ(show("0000:09:00.0").status, 404);
    EXPECT_EQ(show("nine").status, 400);
    kernel.change_firmware([](std::vector<FirmwareCard>& cards) { cards.clear(); });
    auto const igb = show("0000:01:00.0");
    EXPECT_EQ(igb.status, 422);
    EXPECT_THAT(igb.body, testing::HasSubstr("is not a ConnectX card"));
}

TEST_F(FirmwareRoutes, ChangeItAndTellThatItIsPending) {
    EXPECT_EQ(change("{").status, 400);
    EXPECT_EQ(change("{}").status, 422);
    EXPECT_EQ(change(R"({"settings": {"LINK_TYPE_P2": "IB"}})").status, 422);
    auto const planned = change(sixteen, true);
    EXPECT_EQ(planned.status, 200);
    EXPECT_EQ(json::parse(planned.body).at("plan").at("steps").at(0).at("step"), "set_firmware");
    auto const accepted = change(sixteen);
    ASSERT_EQ(accepted.status, 202) << accepted.body;
    auto const done = bench->ended(json::parse(accepted.body).at("id"));
    EXPECT_EQ(done.state, OperationState::succeeded);
    auto const again = change(sixteen);
    EXPECT_EQ(again.status, 200);
    auto const card = json::parse(again.body);
    EXPECT_EQ(card.at("pending"), "reboot");
    EXPECT_EQ(card.at("next").at("NUM_OF_VFS"), 16);
    EXPECT_EQ(card.at("tries").at("boots").at("NUM_OF_VFS").size(), 1U);
}

TEST_F(FirmwareRoutes, NameTheVmsThatHaveVfs) {
    bench->run(Attach{example::ask()});
    auto const shown = json::parse(show("0000:01:00.0").body);
    EXPECT_THAT(shown.at("in_use").dump(), testing::HasSubstr("attached to vm1"));
    EXPECT_EQ(change(sixteen).status, 409);
}

}  // namespace
}  // namespace vfmgr
