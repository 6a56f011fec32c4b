// SPDX-License-Identifier: Apache-2.0
// What vfmgrd answers to vfmgr-guestd, which is not trusted: it can begin runs of attachments, and
// report verdicts on runs that are due, but on nothing else.
#pragma once

#include "service/bell.hpp"
#include "service/guest/link.hpp"
#include "vfmgr/engine/engine.hpp"

namespace vfmgr {

// All outlive the hooks.
struct Answering {
    Engine& engine;
    Hypervisor& hypervisor;
    Bell const& bell;
    Clock& clock;
};
[[nodiscard]] guestd::FrontHooks guest_answers(Answering const& answering);

}  // namespace vfmgr
