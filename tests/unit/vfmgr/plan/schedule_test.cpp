// SPDX-License-Identifier: Apache-2.0
// Which scheduled verification is next, and what keeps it from starting.
#include "vfmgr/plan/schedule.hpp"

#include <gmock/gmock.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Time const made{std::chrono::hours(24 * 365 * 50)};

Attachment scheduled(std::string id, std::uint32_t every_seconds) {
    Attachment attachment;
    attachment.id = std::move(id);
    attachment.spec.verify_every_seconds = every_seconds;
    attachment.state = AttachmentState::attached;
    attachment.created_at = made;
    return attachment;
}

DesiredState with(std::vector<Attachment> const& attachments) {
    DesiredState desired;
    for (auto const& attachment : attachments) desired.attachments[attachment.id] = attachment;
    return desired;
}

TEST(NextVerification, IsSoLongAfterTheStartOfTheLastRun) {
    auto attachment = scheduled("a", 60);
    EXPECT_EQ(next_verification(with({attachment}), {}, made), (DueVerification{"a", made + 60s}));
    attachment.verification.emplace();
    attachment.verification->started_at = made + 7s;
    attachment.verification->finished_at = made + 30s;
    EXPECT_EQ(next_verification(with({attachment}), {}, made + 30s),
              (DueVerification{"a", made + 67s}));
    EXPECT_EQ(next_verification(with({attachment}), {}, made + 1h),
              (DueVerification{"a", made + 67s}))
        << "overdue, as after a restart";
}

TEST(NextVerification, IsTheLongestOverdue) {
    auto const desired = with({scheduled("a", 300), scheduled("b", 60), scheduled("c", 200)});
    EXPECT_EQ(next_verification(desired, {}, made + 1h)->attachment, "b");
    std::map<std::string, Time> not_before{{"b", made + 250s}};
    EXPECT_EQ(next_verification(desired, not_before, made + 1h)->attachment, "c");
    not_before["c"] = made + 301s;
    EXPECT_EQ(next_verification(desired, not_before, made + 1h),
              (DueVerification{"b", made + 250s}));
    not_before["a"] = made;  // moves nothing forward
    not_before["b"] = made + 1000s;
    EXPECT_EQ(next_verification(desired, not_before, made + 1h),
              (DueVerification{"a", made + 300s}));
}

TEST(NextVerification, IsOnlyOfWhatIsAttachedWithASchedule) {
    auto attaching = scheduled("a", 60);
    attaching.state = AttachmentState::attaching;
    auto detaching = scheduled("b", 60);
    detaching.state = AttachmentState::detaching;
    EXPECT_EQ(next_verification(with({attaching, detaching, scheduled("c", 0)}), {}, made + 1h),
              std::nullopt);
    EXPECT_EQ(next_verification({}, {}, made), std::nullopt);
}

TEST(NextVerification, IsNowWhenTheClockWasSetBack) {
    auto const attachment = scheduled("a", 60);
    EXPECT_EQ(next_verification(with({attachment}), {}, made - 24h),
              (DueVerification{"a", made - 24h}));
}

TEST(VerificationHindrance, IsWhatKeepsTheGuestFromTesting) {
    HostView host;
    Attachment attachment;
    attachment.vm_uuid = "uuid";
    attachment.vm = "db1";
    attachment.vf_pci = PciAddress{0, 1, 0x10, 0};
    EXPECT_EQ(verification_hindrance(host, attachment)->detail, "libvirt no longer knows VM db1");
    auto& vm = host.hypervisor.vms["uuid"];
    vm.name = "db1";
    vm.live = {{attachment.vf_pci, {}}};
    vm.state = VmState::paused;
    EXPECT_EQ(verification_hindrance(host, attachment)->detail, "VM db1 is paused, not running");
    vm.state = VmState::running;
    EXPECT_EQ(verification_hindrance(host, attachment), std::nullopt);
    vm.live[0].pci.function = 1;
    EXPECT_EQ(verification_hindrance(host, attachment)->detail,
              "VM db1 runs without VF 0000:01:10.0");
    EXPECT_THAT(verification_hindrance(host, attachment)->remedy,
                HasSubstr("shut the VM down and start it again"));
}

}  // namespace
}  // namespace vfmgr
