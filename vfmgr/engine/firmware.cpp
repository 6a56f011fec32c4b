// SPDX-License-Identifier: Apache-2.0
// Changes a card's firmware settings: plans again under the claims of all of its ports, from what
// the card reports then. The try is durable before the card is touched.
#include "vfmgr/plan/firmware.hpp"

#include <fmt/format.h>

#include "vfmgr/engine/pfs.hpp"
#include "vfmgr/engine/state.hpp"

namespace vfmgr {

Batch remembering(DesiredState const& desired, FirmwareCard const& card, FirmwareTries tries) {
    Batch batch;
    auto const known = desired.firmware_tries.find(card.pci);
    bool const any = known != desired.firmware_tries.end();
    if (tries == FirmwareTries{}) {
        if (any) batch.erase_firmware_tries.push_back(card.pci);
    } else if (!any || !(known->second == tries)) {
        batch.save_firmware_tries.emplace_back(card.pci, std::move(tries));
    }
    return batch;
}

Result<Plan> Pfs::begin_firmware(Operation& operation, ChangeFirmware const& command) {
    VFMGR_TRY(HostView const host, observe_for(seams(), std::nullopt));
    VFMGR_TRY(auto const cards, seams().kernel.read_firmware(command.card.pci));
    if (cards.size() != 1)
        return fail(Problem::not_found, fmt::format("{} is gone", to_string(command.card.pci)),
                    "vfctl firmware list shows the cards of this host");
    return seams().control.wait([&](Control::State& state) -> Result<Plan> {
        VFMGR_TRY(auto planned, plan_firmware(host, state.desired(), cards[0], command.settings));
        auto batch = remembering(state.desired(), cards[0], std::move(planned.tries));
        operation.state = OperationState::running;
        operation.steps = planned_steps(planned.plan);
        batch.save_operations.push_back(operation);
        VFMGR_CHECK(state.commit(batch));
        return std::move(planned.plan);
    });
}

void Pfs::configure_firmware(Operation& operation, ChangeFirmware const& command) {
    auto const& functions = command.card.functions;
    operations_.run(operation, {functions.begin(), functions.end()}, [&]() -> Result<Batch> {
        VFMGR_TRY(Plan const plan, begin_firmware(operation, command));
        VFMGR_CHECK(operations_.perform(operation, plan, OnFailure::undo));
        Batch batch;
        batch.save_events.push_back(event_of(EventKind::firmware_configured, command.card.pci,
                                             operation, what_was_done(operation),
                                             seams().clock.now()));
        return batch;
    });
}

}  // namespace vfmgr
