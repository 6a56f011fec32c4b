// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/libvirt_events.hpp"
#include "shorthand.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace vfmgr {
namespace {

using test::generous;
using test::in;

std::shared_ptr<DescribedVms> none_described() {
    return std::make_shared<DescribedVms>(std::nullopt);
}

TEST(LibvirtEvents, WatchHearsOnlyItsOwnDevice) {
    LibvirtEvents events(nullptr, none_described());
    LibvirtEvents::Watch watch(events, "vm-a", "ua-vfmgr-1");
    events.unplug_ended("vm-b", "ua-vfmgr-1", UnplugNews::removed);
    events.unplug_ended("vm-a", "ua-vfmgr-11", UnplugNews::removed);
    events.domain_changed("vm-b", VIR_DOMAIN_EVENT_STOPPED);
    events.domain_changed("vm-a", VIR_DOMAIN_EVENT_DEFINED);
    EXPECT_EQ(watch.next(in(std::chrono::milliseconds(1))), UnplugNews::silence);
    events.unplug_ended("vm-a", "ua-vfmgr-1", UnplugNews::removed);
    EXPECT_EQ(watch.next(in(generous)), UnplugNews::removed);
    EXPECT_EQ(watch.next(in(std::chrono::milliseconds(1))), UnplugNews::silence);
}

TEST(LibvirtEvents, RemovalOutranksRefusal) {
    LibvirtEvents events(nullptr, none_described());
    LibvirtEvents::Watch watch(events, "vm-a", "ua-vfmgr-1");
    events.unplug_ended("vm-a", "ua-vfmgr-1", UnplugNews::removed);
    events.unplug_ended("vm-a", "ua-vfmgr-1", UnplugNews::refused);
    EXPECT_EQ(watch.next(in(generous)), UnplugNews::removed);
    events.unplug_ended("vm-a", "ua-vfmgr-1", UnplugNews::refused);
    EXPECT_EQ(watch.next(in(generous)), UnplugNews::refused);
}

TEST(LibvirtEvents, AWaiterWakesForAStopAndForALostConnection) {
    LibvirtEvents events(nullptr, none_described());
    LibvirtEvents::Watch watch(events, "vm-a", "ua-vfmgr-1");
    std::jthread const stopper([&] { events.domain_changed("vm-a", VIR_DOMAIN_EVENT_STOPPED); });
    EXPECT_EQ(watch.next(in(generous)), UnplugNews::stopped);
    std::jthread const closer([&] { events.connection_closed(); });
    EXPECT_EQ(watch.next(in(generous)), UnplugNews::connection_lost);
}

TEST(LibvirtEvents, EveryEventSaysLookAgainUntilMuted) {
    int looks = 0;
    LibvirtEvents events([&] { ++looks; }, none_described());
    events.domain_changed("vm-a", VIR_DOMAIN_EVENT_STARTED);
    events.domain_changed("vm-a", VIR_DOMAIN_EVENT_STOPPED);
    events.device_added("vm-a");
    events.unplug_ended("vm-a", "x", UnplugNews::removed);
    events.unplug_ended("vm-a", "x", UnplugNews::refused);
    events.connection_closed();
    EXPECT_EQ(looks, 6);
    events.mute();
    events.device_added("vm-a");
    EXPECT_EQ(looks, 6);
}

}  // namespace
}  // namespace vfmgr
