// SPDX-License-Identifier: Apache-2.0
// api/examples hold what the types read and write: the same members, the same values. A spec may
// leave members out; then the written form reads as the same value.
#include <gtest/gtest.h>

#include <fstream>

#include "api/types/attachment.hpp"
#include "api/types/check.hpp"
#include "api/types/firmware.hpp"
#include "api/types/guest.hpp"
#include "api/types/json.hpp"
#include "api/types/operation.hpp"
#include "api/types/pf.hpp"
#include "api/types/rdma.hpp"
#include "api/types/vm_info.hpp"

namespace vfmgr {
namespace {

nlohmann::json example(std::string const& name) {
    std::ifstream file(VFMGR_REPOSITORY "/api/examples/" + name + ".json");
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
    expect_golden<AttachmentSpec>("attachment_spec-all");
    expect_golden<InteropRequest>("interop_request");
    expect_golden<InteropWindow>("interop_window");
    expect_golden<CheckReport>("check_report");
    expect_golden<RdmaName>("rdma_name");
    expect_golden<RdmaLink>("rdma_link");
    expect_golden<RdmaLinkSpec>("rdma_link_spec");
    expect_golden<FirmwareRequest>("firmware_request");
    expect_golden<HistoryEvent>("history_event");
    expect_golden<HistoryEvent>("history_event-detached");
    expect_golden<Certificate>("certificate");
    expect_golden<Certificate>("certificate-infiniband");
}

// The daemon adds members that are not the card's: what it waits for, who uses it, what was tried.
TEST(Examples, FirmwareIsACardAndMore) {
    for (auto const* name : {"firmware", "firmware-locked"}) {
        auto document = example(name);
        for (auto const* member : {"pending", "in_use", "tries"})
            EXPECT_EQ(document.erase(member), 1U) << name;
        auto const card = from_json_document<FirmwareCard>(document);
        ASSERT_TRUE(card) << name << ": " << card.error().detail;
        EXPECT_EQ(nlohmann::json(*card), document) << name;
    }
}

TEST(Examples, SpecsMayLeaveMembersOut) {
    expect_same_value<PfSpec>("pf_spec-least");
    expect_same_value<AttachmentSpec>("attachment_spec");
    expect_same_value<AttachmentSpec>("attachment_spec-least");
}

TEST(Examples, ProblemsAreErrors) {
    for (auto const* name : {"problem", "problem-violations"}) {
        auto document = example(name);
        nlohmann::json again = error_from_json(document);
        for (auto const* member : {"instance", "request_id"}) again[member] = document[member];
        EXPECT_EQ(again, document) << name;
    }
}

}  // namespace
}  // namespace vfmgr
