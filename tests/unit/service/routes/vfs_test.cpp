// SPDX-License-Identifier: Apache-2.0
// Lists of VFs, with their states and filters, on an engine with fakes.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using Filters = std::map<std::string, std::string>;

struct VfLists : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::unique_ptr<Bench> bench;

    void SetUp() override {
        kernel.change(
            [](KernelView& view) { view.pfs[pf1] = make_igb_pf("0000:02:00.0", "enp2s0"); });
        hypervisor.add(make_vm("vm1", vm1));
        ASSERT_TRUE(hypervisor.start(vm1));
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
        bench->run(ReplacePfSpec{pf0, spec_with_vfs(3)});
        bench->run(ReplacePfSpec{pf1, spec_with_vfs(2)});
        bench->run(Attach{ask()});
    }
    http::Response get(std::string const& path, Filters query) {
        for (auto const& route : pf_routes(bench->engine)) {
            if (route.path != path || route.method != "GET") continue;
            Call call{{}, {}, {{"pci", to_string(pf0)}}};
            call.request.method = "GET";
            call.request.path = path;
            call.request.query = std::move(query);
            std::promise<http::Response> promise;
            handle(bench->engine, route, call,
                   [&](http::Response response) { promise.set_value(std::move(response)); });
            return promise.get_future().get();
        }
        ADD_FAILURE() << "there is no such route";
        return {};
    }
    // "0000:01:00.0/0 attached", each.
    std::vector<std::string> vfs(Filters query = {}, std::string const& path = "/v1/vfs") {
        std::vector<std::string> all;
        auto const answer = get(path, std::move(query));
        EXPECT_EQ(answer.status, 200) << answer.body;
        auto const body = json::parse(answer.body);
        for (auto const& vf : body["items"])
            all.push_back(fmt::format("{}/{} {}", vf["pf"].get<std::string>(),
                                      vf["index"].get<int>(), vf["state"].get<std::string>()));
        return all;
    }
};

TEST_F(VfLists, HaveTheVfsOfAllPfs) {
    EXPECT_THAT(vfs(),
                ElementsAre("0000:01:00.0/0 attached", "0000:01:00.0/1 free", "0000:01:00.0/2 free",
                            "0000:02:00.0/0 free", "0000:02:00.0/1 free"));
    EXPECT_THAT(
        vfs({}, "/v1/pfs/{pci}/vfs"),
        ElementsAre("0000:01:00.0/0 attached", "0000:01:00.0/1 free", "0000:01:00.0/2 free"));
}

TEST_F(VfLists, AreFiltered) {
    auto const attached = ElementsAre("0000:01:00.0/0 attached");
    auto const id = bench->desired().attachments.begin()->first;
    EXPECT_THAT(vfs({{"state", "attached"}}), attached);
    EXPECT_THAT(vfs({{"vm", "vm1"}}), attached);
    EXPECT_THAT(vfs({{"vm", vm1}}), attached) << "by UUID";
    EXPECT_THAT(vfs({{"network", "train"}, {"pf", "01:00.0"}}), attached);
    EXPECT_THAT(vfs({{"attachment", id}}), attached);
    EXPECT_THAT(vfs({{"pf", "0000:02:00.0"}, {"state", "free"}}),
                ElementsAre("0000:02:00.0/0 free", "0000:02:00.0/1 free"));
    EXPECT_THAT(vfs({{"vm", "vm"}}), IsEmpty()) << "exactly";
    EXPECT_THAT(vfs({{"vm", "vm1"}, {"state", "free"}}), IsEmpty());
    EXPECT_THAT(vfs({{"pf", "0000:09:00.0"}}), IsEmpty());
    EXPECT_EQ(get("/v1/vfs", {{"state", "taken"}}).status, 400);
    EXPECT_EQ(get("/v1/vfs", {{"pf", "enp1s0"}}).status, 400);
}

TEST_F(VfLists, GoOnOverPfs) {
    auto const first = json::parse(get("/v1/vfs", {{"limit", "3"}}).body);
    EXPECT_EQ(first["items"].size(), 3U);
    EXPECT_THAT(vfs({{"cursor", first["next"]}}),
                ElementsAre("0000:02:00.0/0 free", "0000:02:00.0/1 free"));
    EXPECT_EQ(get("/v1/vfs", {{"cursor", first["next"]}, {"state", "free"}}).status, 400);
}

TEST_F(VfLists, SayWhatIsInUseWithoutAnAttachment) {
    kernel.hold(kernel.view().pfs.at(pf0).vfs.at(1).pci, {812, "qemu-system-x86"});
    bench->engine.control().publish(kernel.observe({}).value(), {}, {});
    EXPECT_THAT(vfs({{"state", "in_use"}}), ElementsAre("0000:01:00.0/1 in_use"));
    EXPECT_THAT(vfs({{"state", "attached"}}), ElementsAre("0000:01:00.0/0 attached"));
}

TEST_F(VfLists, SayHowEachDiffersFromItsDesiredState) {
    auto const drift = [&](int vf) {
        return json::parse(get("/v1/vfs", {}).body)["items"][static_cast<std::size_t>(vf)]["drift"];
    };
    EXPECT_EQ(drift(0), json::array());
    kernel.change([](KernelView& view) {
        view.pfs.at(pf0).vfs.at(0).settings.mac = MacAddress::parse("02:00:00:00:99:99").value();
    });
    bench->engine.control().publish(kernel.observe({}).value(), {}, {});
    EXPECT_EQ(drift(0).size(), 1U);
    EXPECT_THAT(drift(0)[0].get<std::string>(), testing::HasSubstr("has mac 02:00:00:00:99:99"));
    EXPECT_EQ(drift(1), json::array());
    auto const pf = [&] { return json::parse(get("/v1/pfs/{pci}", {}).body)["drift"]; };
    EXPECT_EQ(pf(), json::array()) << "its VF has it";
    kernel.change([](KernelView& view) {
        auto& vfs = view.pfs.at(pf0).vfs;
        vfs.erase(vfs.begin());
    });
    bench->engine.control().publish(kernel.observe({}).value(), {}, {});
    EXPECT_EQ(pf().size(), 2U) << "the number of VFs, and the VF that is gone: " << pf();
}

TEST_F(VfLists, SayWhatIsKeptForSomebody) {
    ReservationSpec spec;
    spec.network = "train";
    ASSERT_TRUE(bench->submit(Reserve{"job", spec}));
    EXPECT_EQ(vfs({{"state", "reserved"}}).size(), 1U);
    EXPECT_EQ(vfs({{"state", "free"}}).size(), 3U);
}

// What can't be read is not free.
TEST_F(VfLists, CallNothingFreeThatCantBeRead) {
    bench->engine.start_observing();
    hypervisor.observe_error = Error{Problem::unavailable, "no libvirt", "start it"};
    EXPECT_FALSE(bench->submit(Detach{"00000000"})) << "which observes once more";
    EXPECT_THAT(vfs({{"state", "free"}}), IsEmpty());
    EXPECT_THAT(vfs({{"state", "attached"}}), ElementsAre("0000:01:00.0/0 attached"));
}

TEST_F(VfLists, HaveQuarantines) {
    kernel.fail_at = Fault{kernel.performed(), FaultPoint::before};
    bench->run(Detach{bench->desired().attachments.begin()->first});
    EXPECT_THAT(vfs({{"state", "quarantined"}}), ElementsAre("0000:01:00.0/0 quarantined"));
    EXPECT_THAT(vfs({{"vm", "vm1"}}), IsEmpty()) << "it has it no more";
}

}  // namespace
}  // namespace vfmgr
