// SPDX-License-Identifier: Apache-2.0
#include "service/guest/identity.hpp"

#include <gmock/gmock.h>

namespace vfmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

VmInfo running(std::string uuid, std::uint32_t cid, std::int32_t start_id) {
    VmInfo vm;
    vm.uuid = uuid;
    vm.name = "vm-" + uuid;
    vm.vsock_cid = cid;
    vm.start_id = start_id;
    return vm;
}

HypervisorView view_of(std::vector<VmInfo> vms) {
    HypervisorView view;
    view.observed_at = system_clock().now();
    for (auto& vm : vms) view.vms[vm.uuid] = std::move(vm);
    return view;
}

// A libvirt that counts its queries.
class Libvirt final : public Hypervisor {
  public:
    HypervisorView view;
    std::vector<HypervisorScope> asked;

    Result<HypervisorView> observe(HypervisorScope const& scope) override {
        asked.push_back(scope);
        auto seen = view;
        std::erase_if(seen.vms, [&](auto const& entry) { return scope && entry.first != *scope; });
        return seen;
    }
    Result<Observed> perform(HypervisorStep const&, Deadline) override { return Observed{}; }
    Result<void> settle(std::string const&, Deadline) override { return {}; }
};

struct Identity : testing::Test {
    HypervisorView published = view_of({running("a", 3, 1), running("b", 4, 2)});
    Libvirt libvirt;
};

TEST_F(Identity, IsAnsweredFromWhatIsPublished) {
    auto const earlier = published.observed_at - std::chrono::seconds(1);
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(identify_vm({published, earlier}, libvirt, 3)->uuid, "a");
    EXPECT_EQ(identify_vm({published, earlier}, libvirt, 9).error().problem, Problem::not_found);
    EXPECT_THAT(libvirt.asked, IsEmpty());
}

// The CID has since become another VM's, and the published view does not show it yet.
TEST_F(Identity, IsAskedForWhereLibvirtToldOfAChangeSince) {
    libvirt.view = view_of({running("b", 3, 5)});
    auto const later = published.observed_at + std::chrono::milliseconds(1);
    EXPECT_EQ(identify_vm({published, later}, libvirt, 3)->uuid, "b");
    EXPECT_EQ(identify_vm({published, published.observed_at}, libvirt, 3)->uuid, "b");
    EXPECT_EQ(libvirt.asked.size(), 2U);
}

TEST_F(Identity, NobodyIsKnownBeforeTheFirstLook) {
    EXPECT_EQ(identify_vm({{}, {}}, libvirt, 3).error().problem, Problem::not_found);
    EXPECT_EQ(libvirt.asked.size(), 1U);
}

TEST_F(Identity, AWriteAsksAboutThatVmAlone) {
    libvirt.view = published;
    VmIdentity const a{"a", "vm-a", 1};
    EXPECT_TRUE(confirm_vm(libvirt, a, 3));
    EXPECT_THAT(libvirt.asked, ElementsAre(HypervisorScope("a")));
    EXPECT_FALSE(confirm_vm(libvirt, a, 4));
    libvirt.view = view_of({running("a", 3, 7)});
    EXPECT_EQ(confirm_vm(libvirt, a, 3).error().problem, Problem::not_found);
    libvirt.view = view_of({});
    EXPECT_FALSE(confirm_vm(libvirt, a, 3));
}

TEST_F(Identity, LivesEndByStopRestartAndAnotherCid) {
    auto const& before = published;
    EXPECT_THAT(ended_lives(before, before), IsEmpty());
    EXPECT_THAT(ended_lives(before, view_of({running("a", 3, 1)})), ElementsAre(EndedLife{"b", 4}));
    EXPECT_THAT(ended_lives(before, view_of({running("a", 3, 9), running("b", 4, 2)})),
                ElementsAre(EndedLife{"a", 3}));
    EXPECT_THAT(ended_lives(before, view_of({running("a", 5, 1), running("b", 4, 2)})),
                ElementsAre(EndedLife{"a", 3}));
    auto off = running("a", 3, 1);
    off.start_id.reset();
    EXPECT_THAT(ended_lives(before, view_of({off, running("b", 4, 2)})),
                ElementsAre(EndedLife{"a", 3}));
    EXPECT_THAT(ended_lives(view_of({off}), before), IsEmpty()) << "one that starts";
    HypervisorView unknown;
    unknown.stale = true;
    EXPECT_THAT(ended_lives(before, unknown), IsEmpty()) << "libvirt is away, the VMs are not";
}

TEST_F(Identity, RunsEndWithTheLifeThatTheyWereBegunIn) {
    auto const at = published.observed_at;
    auto desired = std::make_shared<DesiredState>();
    desired->attachments["a1"].vm_uuid = "a";
    desired->attachments["a2"].vm_uuid = "a";
    desired->attachments["b1"].vm_uuid = "b";
    auto runs = std::make_shared<std::map<std::string, PendingRun>>();
    for (auto const* id : {"a1", "a2", "b1", "gone"}) {
        (*runs)[id].run = "run-" + std::string(id);
        (*runs)[id].started_at = at - std::chrono::seconds(1);
    }
    (*runs)["a2"].started_at = at;  // possibly for the VM's next life
    Snapshot const now{std::make_shared<HostView>(), desired, runs, nullptr};
    EXPECT_THAT(runs_of({{"a", 3}}, now, at), ElementsAre("run-a1"));
    EXPECT_THAT(runs_of({}, now, at), IsEmpty());
}

}  // namespace
}  // namespace vfmgr
