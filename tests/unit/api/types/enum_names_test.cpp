// SPDX-License-Identifier: Apache-2.0
// The texts of enumerators are the API's words: a changed one breaks clients and old stores.
#include "api/types/enum_names.hpp"

#include <gtest/gtest.h>

#include <set>

#include "api/types/attachment.hpp"
#include "api/types/network.hpp"
#include "api/types/operation.hpp"
#include "api/types/pf.hpp"
#include "api/types/vm_info.hpp"

namespace vfmgr {
namespace {

// Every enumerator from the first to the last has one text, and the text maps back to it.
template <class E>
void expect_words(std::string_view words) {
    EXPECT_EQ(enum_choices<E>(), words);
    std::set<std::string_view> seen;
    int expected = 0;
    for (auto const& [enumerator, text] : enum_names<E>) {
        EXPECT_EQ(static_cast<int>(enumerator), expected++) << words << ": out of order";
        EXPECT_TRUE(seen.insert(text).second) << text << " twice";
        EXPECT_EQ(enum_name(enumerator), text);
        EXPECT_EQ(enum_value<E>(text), enumerator) << text;
    }
    EXPECT_EQ(enum_name(static_cast<E>(expected)), "invalid") << words;
    EXPECT_EQ(enum_name(static_cast<E>(-1)), "invalid") << words;
}

TEST(EnumNames, AreTheWordsOfTheApi) {
    expect_words<AttachmentState>("attaching, attached, detaching");
    expect_words<Judge>("host, guest");
    expect_words<LinkLayer>("ethernet, infiniband");
    expect_words<LinkState>("auto, enable, disable");
    expect_words<OperationKind>(
        "configure_pf, attach, detach, verify, restore, configure_firmware, add_rdma_link, "
        "remove_rdma_link, end_gone_pf, confirm_gone_pf, rekey_pf, apply, change_attachment, "
        "place_hostdevs");
    expect_words<OperationState>("queued, running, succeeded, failed");
    expect_words<Persistence>("auto, live, config");
    expect_words<PfMode>("observe, manage, enforce");
    expect_words<RdmaMode>("auto, rxe, none");
    expect_words<StepState>("planned, intended, done, failed, undone");
    expect_words<TestPath>("internal_switch, wire");
    expect_words<Verdict>("pass, fail, skip, not_applicable, pending");
    expect_words<VerifyMode>("none, background, required");
    expect_words<VlanProtocol>("802.1q, 802.1ad");
    expect_words<VmState>("running, paused, shut_off, other");
}

TEST(EnumNames, OnlyTheExactWordIsOne) {
    using namespace std::string_view_literals;
    for (auto const text : {""sv, "Auto"sv, "AUTO"sv, "aut"sv, "auto "sv, " auto"sv, "auto_"sv,
                            "auto\0"sv, "auto,"sv, "0"sv, "invalid"sv})
        EXPECT_EQ(enum_value<LinkState>(text), std::nullopt) << text;
}

}  // namespace
}  // namespace vfmgr
