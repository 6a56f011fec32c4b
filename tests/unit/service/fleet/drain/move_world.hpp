// SPDX-License-Identifier: Apache-2.0
// Two hosts, a VM and its identities, as the calls of a move change them. It keeps the rules that
// hosts keep: no VF without a VM there, no identity that the host may not use. For tests.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "service/fleet/drain/move.hpp"

namespace vfmgr::fleet::test {

inline Attachment attachment_of_vm() {
    Attachment attachment;
    attachment.id = "0123abcd";
    attachment.vf = {PciAddress{0, 1, 0, 0}, 3};
    attachment.vm = "vm1";
    attachment.vm_uuid = "6f5b2f6e-8f5e-4c3e-9d8b-0123456789ab";
    attachment.spec.vm = "vm1";
    attachment.spec.network = "train";
    attachment.spec.reservation = "job-17";
    attachment.settings.mac = MacAddress{{0x52, 0x54, 0, 0, 0, 1}};
    attachment.settings.vlan = Vlan{100};
    attachment.address = IpAddress::parse("10.0.0.17").value();
    attachment.state = AttachmentState::attached;
    return attachment;
}

inline Move planned(bool running) {
    return planned_move(attachment_of_vm(), {.id = "89abcdef",
                                             .drain = "",
                                             .source = "a",
                                             .target = "b",
                                             .target_pf = PciAddress{0, 9, 0, 0},
                                             .rail = "3",
                                             .running = running,
                                             .requested_by = "uid:0"})
        .value();
}

class MoveWorld {
  public:
    std::string vm_on = "a";
    std::map<std::string, std::string> attached{{"a", "0123abcd"}};  // by host
    std::map<std::string, bool> proved;
    std::map<std::string, bool> kept;
    IdentitiesAt identities = IdentitiesAt::source;

    // Does what is asked, and answers.
    MoveAnswer perform(MoveAsk const& ask) {
        return std::visit([&](auto const& one) { return done(one); }, ask);
    }

    // What the host says of a detach that it refused.
    [[nodiscard]] MoveAnswer refused(Move const& move) const {
        MoveAnswer answer{Outcome::refusal, Error{Problem::timed_out, "it was refused", "again"}};
        if (move.stage == MoveStage::detaching) answer.still_attached = attached.contains("a");
        return answer;
    }

  private:
    static MoveAnswer success() { return {Outcome::success}; }

    MoveAnswer done(HostCall const& call) {
        auto const tail = call.path.substr(call.path.rfind('/') + 1);
        if (call.path.starts_with("/v1/reservations/")) {
            if (call.method == "DELETE" && !kept[call.host]) return not_found();
            kept[call.host] = call.method == "PUT";
            return success();
        }
        if (call.method == "DELETE") {
            if (!attached.contains(call.host)) return not_found();
            EXPECT_EQ(attached[call.host], tail);
            attached.erase(call.host);
            proved.erase(call.host);
            return success();
        }
        if (tail == "verifications") {
            EXPECT_TRUE(attached.contains(call.host)) << "nothing to prove";
            proved[call.host] = true;
            return success();
        }
        return attach(call);
    }
    MoveAnswer attach(HostCall const& call) {
        EXPECT_EQ(vm_on, call.host) << "a VF for a VM that is elsewhere";
        EXPECT_EQ(identities, call.host == "a" ? IdentitiesAt::source : IdentitiesAt::target);
        EXPECT_FALSE(call.idempotency_key.empty());
        // The key gives the second call the first one's answer.
        attached.try_emplace(call.host, "feed" + call.host + "001");
        if (call.body.find("\"reservation\"") != std::string::npos) kept[call.host] = false;
        return {Outcome::success, {}, attached[call.host]};
    }
    MoveAnswer done(IdentityAsk const& ask) {
        if (ask.step == IdentityStep::restore) {
            EXPECT_FALSE(attached.contains("b")) << "in use is in use";
            identities = IdentitiesAt::source;
        } else {
            EXPECT_FALSE(attached.contains("a")) << "in use is in use";
            identities =
                ask.step == IdentityStep::claim ? IdentitiesAt::target : IdentitiesAt::under_way;
        }
        return success();
    }
    MoveAnswer done(VmAsk const& ask) {
        for (auto const& [host, id] : attached)
            EXPECT_EQ(host, ask.host) << "a VM with a VF does not migrate";
        vm_on = ask.host;
        return success();
    }
    static MoveAnswer not_found() {
        return {Outcome::refusal, Error{Problem::not_found, "there is none", ""}};
    }
};

}  // namespace vfmgr::fleet::test
