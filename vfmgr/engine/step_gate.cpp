// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/step_gate.hpp"

namespace vfmgr {

StepGate::Passage::Passage(StepGate& gate) : gate_(gate) {
    std::unique_lock lock(gate_.mutex_);
    gate_.changed_.wait(lock, [this] { return !gate_.shut_; });
    ++gate_.underway_;
}

StepGate::Passage::~Passage() {
    std::lock_guard const lock(gate_.mutex_);
    --gate_.underway_;
    gate_.changed_.notify_all();
}

void StepGate::shut() {
    std::unique_lock lock(mutex_);
    shut_ = true;
    changed_.wait(lock, [this] { return underway_ == 0; });
}

void StepGate::open() {
    std::lock_guard const lock(mutex_);
    shut_ = false;
    changed_.notify_all();
}

}  // namespace vfmgr
