// SPDX-License-Identifier: Apache-2.0
// LibvirtHypervisor on libvirt's built-in test driver: domains, XML and lifecycle events are real,
// attach and detach are refused as unsupported. The lab tests real plugging.
#include "vfmgr/hypervisor/libvirt_hypervisor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "shorthand.hpp"
#include "vfmgr/hypervisor/libvirt_hypervisor.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;
using test::in;
using test::pci;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char const* uri = "test:///default";
constexpr char const* transient_uuid = "11111111-2222-3333-4444-000000000001";
constexpr char const* persistent_uuid = "11111111-2222-3333-4444-000000000002";
constexpr char const* nobody = "11111111-2222-3333-4444-00000000000f";

Result<VmIdentity> vm_now(LibvirtHypervisor& hypervisor, std::uint32_t cid) {
    VFMGR_TRY(auto const view, hypervisor.observe(std::nullopt));
    return vm_with_cid(view, cid);
}

std::string xml(std::string const& name, std::string const& uuid, std::string const& slot) {
    return "<domain type='test'><name>" + name + "</name><uuid>" + uuid +
           "</uuid><memory>65536</memory><os><type>hvm</type></os><devices>"
           "<controller type='pci' index='0' model='pcie-root'/>"
           "<controller type='pci' index='1' model='pcie-root-port'/>"
           "<hostdev mode='subsystem' type='pci' managed='no'><source>"
           "<address domain='0x0000' bus='0x01' slot='" +
           slot +
           "' function='0x4'/></source><alias name='ua-vfmgr-3f9c2b1d'/></hostdev>"
           "<interface type='network'><source network='vfs'/></interface>"
           "<vsock model='virtio'><cid auto='no' address='7'/></vsock></devices></domain>";
}

// All connections of the process share the test driver's default host.
class LibvirtHypervisorTest : public ::testing::Test {
  protected:
    // The default host has one queue of events, too. When its last subscriber leaves with an event
    // in it, libvirt drops the queue's timer and keeps the event, and the next one wakes no one
    // (virObjectEventStateQueueRemote: only the first in a queue starts the timer). So one stays.
    static void SetUpTestSuite() {
        ASSERT_TRUE(start_libvirt_event_loop());
        subscriber_ = virConnectOpen(uri);
        ASSERT_NE(subscriber_, nullptr);
        subscription_ = virConnectDomainEventRegisterAny(
            subscriber_, nullptr, VIR_DOMAIN_EVENT_ID_REBOOT,
            [](virConnectPtr, virDomainPtr, void*) {}, nullptr, nullptr);
        ASSERT_GE(subscription_, 0);
    }
    static void TearDownTestSuite() {
        virConnectDomainEventDeregisterAny(subscriber_, subscription_);
        virConnectClose(subscriber_);
    }
    void SetUp() override {
        connection_.reset(virConnectOpen(uri));
        ASSERT_TRUE(connection_);
        transient_.reset(
            virDomainCreateXML(connection_.get(), xml("tr", transient_uuid, "0x10").c_str(), 0));
        ASSERT_TRUE(transient_);
        persistent_.reset(
            virDomainDefineXML(connection_.get(), xml("pe", persistent_uuid, "0x11").c_str()));
        ASSERT_TRUE(persistent_);
    }
    void TearDown() override {
        if (virDomainIsActive(transient_.get()) == 1) virDomainDestroy(transient_.get());
        if (virDomainIsActive(persistent_.get()) == 1) virDomainDestroy(persistent_.get());
        virDomainUndefine(persistent_.get());
    }

    AttachHostdev attach(char const* uuid, char const* address) const {
        AttachHostdev step;
        step.vm_uuid = uuid;
        step.attachment = "3f9c2b1d";
        step.pci = pci(address);
        return step;
    }
    DetachHostdev detach(char const* uuid, char const* address) const {
        DetachHostdev step;
        step.vm_uuid = uuid;
        step.attachment = "3f9c2b1d";
        step.pci = pci(address);
        return step;
    }

    static inline virConnectPtr subscriber_ = nullptr;
    static inline int subscription_ = -1;
    VirConnect connection_;
    VirDomain transient_;
    VirDomain persistent_;
    LibvirtTimes times_{20s, 10s, 10ms, 50ms};
    LibvirtHypervisor hypervisor_{uri, nullptr, times_};
};

TEST_F(LibvirtHypervisorTest, ObserveTellsTransientFromPersistent) {
    auto const before = std::chrono::system_clock::now();
    auto const view = hypervisor_.observe(std::nullopt);
    ASSERT_TRUE(view) << view.error().detail;
    EXPECT_FALSE(view->stale);
    EXPECT_GE(view->observed_at, before);
    ASSERT_TRUE(view->vms.contains(transient_uuid));
    auto const& transient = view->vms.at(transient_uuid);
    EXPECT_EQ(transient.name, "tr");
    EXPECT_EQ(transient.state, VmState::running);
    EXPECT_FALSE(transient.persistent);
    EXPECT_TRUE(transient.start_id);
    EXPECT_EQ(transient.vsock_cid, 7u);
    EXPECT_THAT(transient.live, ElementsAre(VmHostdev{pci("0000:01:10.4"), "ua-vfmgr-3f9c2b1d"}));
    EXPECT_THAT(transient.config, IsEmpty());

    ASSERT_TRUE(view->vms.contains(persistent_uuid));
    auto const& persistent = view->vms.at(persistent_uuid);
    EXPECT_EQ(persistent.state, VmState::shut_off);
    EXPECT_TRUE(persistent.persistent);
    EXPECT_EQ(persistent.start_id, std::nullopt);
    EXPECT_EQ(persistent.vsock_cid, std::nullopt);
    EXPECT_TRUE(persistent.has_vsock);
    EXPECT_THAT(persistent.live, IsEmpty());
    EXPECT_THAT(persistent.config,
                ElementsAre(VmHostdev{pci("0000:01:11.4"), "ua-vfmgr-3f9c2b1d"}));
    EXPECT_TRUE(view->vms.size() >= 3);  // plus the driver's own
}

TEST_F(LibvirtHypervisorTest, ObserveKnowsThePoolsAVmUses) {
    auto const view = hypervisor_.observe(persistent_uuid);
    ASSERT_TRUE(view);
    ASSERT_EQ(view->vms.size(), 1u);
    EXPECT_THAT(view->vms.at(persistent_uuid).hostdev_networks, IsEmpty());

    Handle<virNetwork, virNetworkFree> const pool(virNetworkDefineXML(
        connection_.get(),
        "<network><name>vfs</name><forward mode='hostdev'><pf dev='ens1'/></forward></network>"));
    ASSERT_TRUE(pool);
    auto const with_pool = hypervisor_.observe(persistent_uuid);
    virNetworkUndefine(pool.get());
    ASSERT_TRUE(with_pool);
    EXPECT_THAT(with_pool->vms.at(persistent_uuid).hostdev_networks, ElementsAre("vfs"));
}

TEST_F(LibvirtHypervisorTest, ObserveOfNobodyIsEmpty) {
    auto const view = hypervisor_.observe(nobody);
    ASSERT_TRUE(view);
    EXPECT_THAT(view->vms, IsEmpty());
}

TEST_F(LibvirtHypervisorTest, ACidFollowsTheRunningVm) {
    auto const found = vm_now(hypervisor_, 7);
    ASSERT_TRUE(found) << found.error().detail;
    EXPECT_EQ(found->uuid, transient_uuid);
    EXPECT_EQ(found->start_id, static_cast<int>(virDomainGetID(transient_.get())));
    ASSERT_EQ(virDomainDestroy(transient_.get()), 0);
    EXPECT_EQ(vm_now(hypervisor_, 7).error().problem, Problem::not_found);
    ASSERT_EQ(virDomainCreate(persistent_.get()), 0);
    auto const next = vm_now(hypervisor_, 7);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->uuid, persistent_uuid);
}

TEST_F(LibvirtHypervisorTest, AttachOfWhatIsThereSucceeds) {
    auto live = attach(transient_uuid, "0000:01:10.4");
    live.live = true;
    EXPECT_TRUE(hypervisor_.perform(live, in(20s)));
    auto config = attach(persistent_uuid, "0000:01:11.4");
    config.config = true;
    EXPECT_TRUE(hypervisor_.perform(config, in(20s)));
}

TEST_F(LibvirtHypervisorTest, AttachOfAVfUnderAnotherAliasIsInUse) {
    auto step = attach(transient_uuid, "0000:01:10.4");
    step.attachment = "00000000";
    step.live = true;
    auto const done = hypervisor_.perform(step, in(20s));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().problem, Problem::vf_in_use);
    EXPECT_EQ(done.error().detail, "0000:01:10.4 is already in VM tr (live), as ua-vfmgr-3f9c2b1d");
}

TEST_F(LibvirtHypervisorTest, AttachRefusedByLibvirtNamesCallVmAndDevice) {
    auto step = attach(transient_uuid, "0000:01:10.6");
    step.attachment = "00000000";
    step.live = true;
    auto const done = hypervisor_.perform(step, in(20s));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().problem, Problem::hypervisor_refused);
    EXPECT_THAT(done.error().detail,
                HasSubstr("libvirt could not attach 0000:01:10.6 to VM tr (live): "));
    ASSERT_EQ(done.error().causes.size(), 1u);
    EXPECT_EQ(done.error().causes[0].call, "virDomainAttachDeviceFlags");
    EXPECT_EQ(done.error().causes[0].code, "VIR_ERR_NO_SUPPORT");
}

TEST_F(LibvirtHypervisorTest, AttachNeedsTheRightKindOfVm) {
    auto live = attach(persistent_uuid, "0000:01:10.6");
    live.live = true;
    EXPECT_EQ(hypervisor_.perform(live, in(20s)).error().detail,
              "VM pe is not running, so 0000:01:10.6 can't be plugged into it");
    auto config = attach(transient_uuid, "0000:01:10.6");
    config.config = true;
    EXPECT_EQ(hypervisor_.perform(config, in(20s)).error().detail,
              "VM tr is transient, so 0000:01:10.6 can't be stored in its configuration");
    auto missing = attach(nobody, "0000:01:10.6");
    missing.live = true;
    EXPECT_EQ(hypervisor_.perform(missing, in(20s)).error().problem, Problem::not_found);
}

TEST_F(LibvirtHypervisorTest, DetachOfWhatIsAbsentSucceeds) {
    for (auto const* uuid : {nobody, transient_uuid, persistent_uuid}) {
        auto step = detach(uuid, "0000:01:10.4");
        step.attachment = "00000000";  // the VF is there under another alias: not vfmgr's
        step.live = step.config = true;
        auto const done = hypervisor_.perform(step, in(20s));
        EXPECT_TRUE(done) << uuid << ": " << done.error().detail;
    }
    auto const view = hypervisor_.observe(std::nullopt);
    EXPECT_EQ(view->vms.at(transient_uuid).live.size(), 1u);
    EXPECT_EQ(view->vms.at(persistent_uuid).config.size(), 1u);
}

TEST_F(LibvirtHypervisorTest, DetachEndsWhenTheVmStops) {
    auto step = detach(transient_uuid, "0000:01:10.4");
    step.live = step.config = true;
    std::promise<void> asked;
    auto done = std::async(std::launch::async, [&] {
        asked.set_value();
        return hypervisor_.perform(step, in(20s));
    });
    asked.get_future().wait();
    auto const start = std::chrono::steady_clock::now();
    ASSERT_EQ(virDomainDestroy(transient_.get()), 0);
    auto const result = done.get();
    EXPECT_TRUE(result) << result.error().detail;
    // The event does this, not the retry, which comes after 10 s.
    EXPECT_LT(std::chrono::steady_clock::now() - start, 9s);
}

TEST_F(LibvirtHypervisorTest, DetachThatDoesNotHappenTimesOut) {
    auto step = detach(transient_uuid, "0000:01:10.4");
    step.live = true;
    auto const done = hypervisor_.perform(step, in(2s));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().problem, Problem::timed_out);
    EXPECT_EQ(done.error().detail,
              "VM tr still has 0000:01:10.4: the guest did not answer the unplug request");
    EXPECT_THAT(done.error().remedy, HasSubstr("shutting it down (virsh shutdown tr)"));
    ASSERT_EQ(done.error().causes.size(), 1u);
    EXPECT_EQ(done.error().causes[0].call, "virDomainDetachDeviceAlias");
}

TEST_F(LibvirtHypervisorTest, DetachFromAPausedVmSaysSo) {
    ASSERT_EQ(virDomainSuspend(transient_.get()), 0);
    auto step = detach(transient_uuid, "0000:01:10.4");
    step.live = true;
    auto const done = hypervisor_.perform(step, in(2s));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().detail,
              "VM tr still has 0000:01:10.4: it is paused, so the guest can't release it");
    EXPECT_THAT(done.error().remedy, HasSubstr("resume VM tr (virsh resume tr)"));
}

TEST_F(LibvirtHypervisorTest, DetachFromTheConfigSaysLibvirtsReason) {
    auto step = detach(persistent_uuid, "0000:01:11.4");
    step.config = true;
    auto const done = hypervisor_.perform(step, in(20s));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().problem, Problem::hypervisor_refused);
    EXPECT_THAT(done.error().detail,
                HasSubstr("libvirt could not detach 0000:01:11.4 from VM pe (persistent): "));
}

TEST_F(LibvirtHypervisorTest, SettleChangesNothing) {
    auto const text = [&](virDomainPtr domain) {
        VirText const read(virDomainGetXMLDesc(domain, 0));
        return std::string(read.get());
    };
    auto const running = text(transient_.get());
    auto const stopped = text(persistent_.get());
    EXPECT_TRUE(hypervisor_.settle(transient_uuid, in(20s)));
    EXPECT_TRUE(hypervisor_.settle(persistent_uuid, in(20s)));
    EXPECT_TRUE(hypervisor_.settle(nobody, in(20s)));
    EXPECT_EQ(text(transient_.get()), running);
    EXPECT_EQ(text(persistent_.get()), stopped);
}

TEST_F(LibvirtHypervisorTest, AStoppedVmSaysLookAgain) {
    std::promise<void> looked;
    std::atomic<bool> first{true};
    LibvirtHypervisor watching(uri, [&] {
        if (first.exchange(false)) looked.set_value();
    });
    ASSERT_TRUE(watching.observe(nobody));  // connects
    ASSERT_EQ(virDomainDestroy(transient_.get()), 0);
    EXPECT_EQ(looked.get_future().wait_for(20s), std::future_status::ready);
}

TEST_F(LibvirtHypervisorTest, NamesADeviceInThePersistentXmlAlone) {
    MarkHostdev step{persistent_uuid,     "0a0b0c0d", {},  pci("0000:01:11.4"), true,
                     "ua-vfmgr-0a0b0c0d", false,      "pe"};
    using Alias = std::optional<std::string>;
    for (auto const& alias : {Alias("ua-vfmgr-0a0b0c0d"), Alias()}) {
        step.alias = alias;
        step.managed = !alias;
        for (int times = 0; times < 2; ++times) {
            auto const done = hypervisor_.perform(step, in(20s));
            ASSERT_TRUE(done) << done.error().detail;
            auto const& device = done->vm->vms.at(persistent_uuid).config.at(0);
            EXPECT_EQ(device.alias, alias);
            EXPECT_EQ(device.managed, !alias);
        }
    }
    step.pci = pci("0000:01:12.4");
    EXPECT_EQ(hypervisor_.perform(step, in(20s)).error().problem, Problem::conflict);
    MarkHostdev const record{transient_uuid, "0a0b0c0d",          {},    pci("0000:01:10.4"),
                             false,          "ua-vfmgr-0a0b0c0d", false, "tr"};
    auto const done = hypervisor_.perform(record, in(20s));
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->vm->vms.at(transient_uuid).live.at(0).alias, "ua-vfmgr-3f9c2b1d");
    EXPECT_TRUE(done->vm->vms.at(transient_uuid).config.empty()) << "it stays transient";
}

TEST(LibvirtHypervisor, WithoutLibvirtEverythingIsUnavailable) {
    LibvirtHypervisor hypervisor("qemu+unix:///system?socket=/nonexistent/libvirt-sock", nullptr,
                                 {20s, 10s, 10ms, 50ms});
    EXPECT_EQ(hypervisor.observe(std::nullopt).error().problem, Problem::unavailable);
    EXPECT_EQ(vm_now(hypervisor, 3).error().problem, Problem::unavailable);
    EXPECT_EQ(hypervisor.settle(nobody, in(20s)).error().problem, Problem::unavailable);
    DetachHostdev step;
    step.vm_uuid = nobody;
    step.attachment = "3f9c2b1d";
    step.live = true;
    EXPECT_EQ(hypervisor.perform(step, in(20s)).error().problem, Problem::unavailable);
}

}  // namespace
}  // namespace vfmgr
