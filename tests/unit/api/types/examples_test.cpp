// SPDX-License-Identifier: Apache-2.0
// api/examples hold what the types read and write: the same members, the same values. A spec may
// leave members out; then the written form reads as the same value.
#include <gtest/gtest.h>

#include <fstream>

#include "api/types/attachment_patch.hpp"
#include "api/types/check.hpp"
#include "api/types/daemon.hpp"
#include "api/types/desired.hpp"
#include "api/types/enrolment.hpp"
#include "api/types/event.hpp"
#include "api/types/firmware.hpp"
#include "api/types/fleet.hpp"
#include "api/types/fleet_reservation.hpp"
#include "api/types/guest.hpp"
#include "api/types/identities.hpp"
#include "api/types/json.hpp"
#include "api/types/network.hpp"
#include "api/types/operation.hpp"
#include "api/types/pf_state.hpp"
#include "api/types/pool.hpp"
#include "api/types/rdma.hpp"
#include "api/types/reservation.hpp"
#include "api/types/tenant.hpp"
#include "api/types/vm_info.hpp"
#include "api/types/vm_topology.hpp"
#include "tests/unit/repository.hpp"

namespace vfmgr {
namespace {

nlohmann::json example(std::string const& name) {
    std::ifstream file(test::repository() / ("api/examples/" + name + ".json"));
    EXPECT_TRUE(file.is_open()) << name;
    return nlohmann::json::parse(file, nullptr, false);
}

template <class T>
void expect_golden(std::string const& name) {
    auto const document = example(name);
    auto const value = from_json_document<T>(document);
    ASSERT_TRUE(value) << name << ": " << value.error().detail;
    EXPECT_EQ(nlohmann::json(*value), document) << name;
}

template <class T>
void expect_same_value(std::string const& name) {
    auto const value = from_json_document<T>(example(name));
    ASSERT_TRUE(value) << name << ": " << value.error().detail;
    auto const again = from_json_document<T>(nlohmann::json(*value));
    ASSERT_TRUE(again) << name << ": " << again.error().detail;
    EXPECT_EQ(*again, *value) << name;
}

TEST(Examples, FactsAreWrittenAsTheyAreRead) {
    expect_golden<Attachment>("attachment");
    expect_golden<Attachment>("attachment-external");
    expect_golden<Operation>("operation");
    expect_golden<Operation>("operation-failed");
    expect_golden<Operation>("operation-detached");
    expect_golden<Verification>("verification");
    expect_golden<Verification>("verification-failed");
    expect_golden<Verification>("verification-wire");
    expect_golden<Verification>("verification-served");
    expect_golden<ResponderInfo>("responder_info");
    expect_golden<SessionOpening>("session_opening");
    expect_golden<PfInfo>("pf_info");
    expect_golden<VmInfo>("vm_info");
    expect_golden<PfSpec>("pf_spec");
    expect_golden<Network>("network");
    expect_golden<Network>("network-infiniband");
    expect_golden<Pool>("pool");
    expect_golden<Tenant>("tenant");
    expect_golden<Tenant>("tenant-least");
    expect_golden<ReservationSpec>("reservation_spec");
    expect_golden<Reservation>("reservation");
    expect_golden<FleetReservationSpec>("fleet_reservation_spec");
    expect_golden<FleetReservation>("fleet_reservation");
    expect_golden<Identities>("identities");
    expect_golden<Identities>("identities-fleet");
    expect_golden<IdentitiesView>("identities_view");
    expect_golden<FleetMembership>("fleet_membership");
    expect_golden<FleetView>("fleet_view");
    expect_golden<DesiredDocument>("desired");
    expect_golden<AttachmentSpec>("attachment_spec-all");
    expect_golden<AttachmentPatch>("attachment_patch");
    expect_golden<AttachmentPatch>("attachment_patch-removed");
    expect_golden<InteropRequest>("interop_request");
    expect_golden<InteropWindow>("interop_window");
    expect_golden<Enrolment>("enrolment");
    expect_golden<CheckReport>("check_report");
    expect_golden<RdmaName>("rdma_name");
    expect_golden<RdmaLink>("rdma_link");
    expect_golden<RdmaLinkSpec>("rdma_link_spec");
    expect_golden<FirmwareRequest>("firmware_request");
    expect_golden<FirmwareView>("firmware");
    expect_golden<FirmwareView>("firmware-locked");
    expect_golden<PfView>("pf");
    expect_golden<VfView>("vf");
    expect_golden<RekeyRequest>("rekey_request");
    expect_golden<VmTopology>("vm_topology");
    expect_golden<About>("about");
    expect_golden<About>("fleet_about");
    expect_golden<ReadinessView>("readiness");
    expect_golden<ProblemExplanation>("problem_explanation");
    expect_golden<TokenRequest>("token_request");
    expect_golden<TokenRotation>("token_rotation");
    expect_golden<NewTokenView>("new_token");
    expect_golden<NewSession>("new_session");
    expect_golden<AuditEntry>("audit_entry");
    expect_golden<AuditEntry>("audit_entry-counted");
    expect_golden<Event>("event");
    expect_golden<Event>("event-detached");
    expect_golden<Event>("event-token");
    expect_golden<Certificate>("certificate");
    expect_golden<Certificate>("certificate-infiniband");
}

// A client need not know the members of each kind of step.
TEST(Examples, APlanIsReadWithoutItsStepsMembers) {
    auto const read = from_json_document<DryRun>(example("dry_run"), UnknownKeys::ignored);
    ASSERT_TRUE(read) << read.error().detail;
    ASSERT_EQ(read->plan.steps.size(), 1U);
    EXPECT_EQ(read->plan.steps[0].sentence, "bind VF 2 of 0000:01:00.0 to vfio-pci");
    EXPECT_EQ(read->plan.notes.size(), 1U);
    EXPECT_TRUE(read->attachment);
}

TEST(Examples, SpecsMayLeaveMembersOut) {
    expect_same_value<PfSpec>("pf_spec-least");
    expect_same_value<Network>("network-least");
    expect_same_value<Pool>("pool-least");
    expect_same_value<ReservationSpec>("reservation_spec-least");
    expect_same_value<AttachmentSpec>("attachment_spec");
    expect_same_value<AttachmentSpec>("attachment_spec-least");
}

TEST(Examples, ProblemsAreErrors) {
    for (auto const* name : {"problem", "problem-violations", "problem-revision"}) {
        auto document = example(name);
        nlohmann::json again = error_from_json(document);
        for (auto const* member : {"instance", "request_id"}) again[member] = document[member];
        EXPECT_EQ(again, document) << name;
    }
}

}  // namespace
}  // namespace vfmgr
