// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/execute.hpp"
#include "vfmgr/engine/state.hpp"
#include "vfmgr/engine/timing.hpp"
#include "vfmgr/plan/step_subject.hpp"

#include <fmt/format.h>

#include <future>
#include <map>
#include <ranges>
#include <set>

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

// Changes of many VFs, and an unplug that a guest is slow to allow, take long; the rest is quick.
std::chrono::seconds step_seconds_max(Step const& step) {
    if (as<SetNumVfs>(step)) return longest_kernel_step;
    if (as<BindVfs>(step)) return longest_kernel_step;
    if (as<DetachHostdev>(step)) return 120s;
    return 60s;
}

// Observes only the part of the host that a step changes: that is enough to undo it.
Result<HostView> observe(Seams const& seams, StepSubject const& subject) {
    HostView view;
    if (auto const* const part = std::get_if<KernelSubject>(&subject)) {
        VFMGR_TRY(view.kernel, observe_kernel(seams, *part));
    } else if (auto const* const vm = std::get_if<std::string>(&subject)) {
        auto const span = timed(SpanKind::observe, "VM " + *vm);
        VFMGR_TRY(view.hypervisor, seams.hypervisor.observe(*vm));
        seams.control.publish(view.hypervisor, *vm, seams.clock.now());
    }
    return view;
}

Result<Observed> perform(Seams const& seams, Step const& step, SpanKind kind = SpanKind::step) {
    auto const span = timed(kind, sentence(step), std::string(name_of(step)));
    auto const deadline = seams.clock.steady_now() + step_seconds_max(step);
    if (auto const* const kernel_step = std::get_if<KernelStep>(&step)) {
        auto const passage = seams.gate ? seams.gate->enter() : Held();
        return seams.kernel.perform(*kernel_step, deadline);
    }
    if (auto const* const vm_step = std::get_if<HypervisorStep>(&step))
        return seams.hypervisor.perform(*vm_step, deadline);
    return Observed{};
}

Result<void> commit(Seams const& seams, Operation const& operation, Batch& batch) {
    auto const span = timed(SpanKind::commit, "journal");
    batch.save_operations.push_back(operation);
    return seams.control.wait([&](Control::State& state) { return state.commit(batch); });
}

std::string could_not(Step const& step, Error const& error) {
    return fmt::format("could not {}: {}", sentence(step), error.detail);
}

// Moves the record into the batch and returns it from there: it is too long to copy.
Result<JournalRecord> write(Seams const& seams, Operation const& operation, JournalRecord record) {
    Batch batch;
    batch.save_records.push_back({operation.id, std::move(record)});
    VFMGR_CHECK(commit(seams, operation, batch));
    return std::move(batch.save_records.front().record);
}

// Writes only the state: a step of a thousand VFs and its undo are long, and the journal has had
// them since the intention was written.
Result<void> write_state(Seams const& seams, Operation const& operation,
                         JournalRecord const& record) {
    Batch batch;
    batch.save_record_states.push_back({operation.id, record.seq, record.state});
    return commit(seams, operation, batch);
}

// What a step's undo is made from: it is observed again once a step of the same group has been
// done.
enum class Aspect { number_of_vfs, settings, drivers, resets, interfaces, devices, other };

Aspect aspect_of(Step const& step) {
    if (as<SetNumVfs>(step)) return Aspect::number_of_vfs;  // every VF is made anew
    if (as<ConfigureVfs>(step)) return Aspect::settings;
    // VFIO makes a VF's nodes when it is bound.
    if (as<BindVfs>(step) || as<AttachExternal>(step) || as<DetachExternal>(step))
        return Aspect::drivers;
    if (as<ResetVf>(step)) return Aspect::resets;
    if (as<SetLink>(step) || as<AwaitCarrier>(step) || as<AddVlanInterface>(step) ||
        as<RemoveVlanInterface>(step) || as<AddAddress>(step) || as<RemoveAddress>(step) ||
        as<AddPeer>(step) || as<RemovePeer>(step) || as<AddRdmaLink>(step) ||
        as<RemoveRdmaLink>(step))
        return Aspect::interfaces;
    if (std::holds_alternative<HypervisorStep>(step)) return Aspect::devices;
    return Aspect::other;
}

// False for a VM if libvirt could not be asked.
bool has_part_of(HostView const& host, Step const& step) {
    return !std::holds_alternative<HypervisorStep>(step) || !host.hypervisor.stale;
}

// What an operation knows of the parts of the host that its steps change. The claims keep other
// operations out, but not other programs, so what is older than this is observed again.
constexpr auto known_for = 2s;

class Parts {
  public:
    Parts(Seams const& seams, Plan const& plan, std::optional<PlannedFrom> const& planned_from)
        : seams_(seams), plan_(plan) {
        if (!planned_from) return;
        auto const& host = planned_from->host;
        // Not copied: it is the caller's, and lives longer than this.
        auto const view = std::shared_ptr<HostView const>(std::shared_ptr<void>(), &host);
        auto const now = seams.clock.steady_now();
        for (auto const& step : plan.steps)
            if (has_part_of(host, step)) known_[subject_of(step)] = {view, now, {}};
    }
    // Returns the part that the step is about to change.
    Result<HostView const*> before(Step const& step) {
        if (as<AwaitCarrier>(step)) return &nothing_;
        auto const subject = subject_of(step);
        auto const aspect = aspect_of(step);
        auto const now = seams_.clock.steady_now();
        auto const known = known_.find(subject);
        if (known != known_.end() && now - known->second.at < known_for &&
            !known->second.changed.contains(aspect) &&
            !known->second.changed.contains(Aspect::number_of_vfs) && aspect != Aspect::other)
            return known->second.view.get();
        VFMGR_TRY(HostView view, observe(seams_, subject));
        auto& part = known_[subject];
        part = {std::make_shared<HostView>(std::move(view)), now, {}};
        return part.view.get();
    }
    // The step has been tried. What it read back itself is what the next step changes. A part that
    // no later step changes is observed meanwhile for the end, unless it was read back.
    void after(std::size_t index, std::optional<HypervisorView> read_back) {
        auto const subject = subject_of(plan_.steps[index]);
        known_[subject].changed.insert(aspect_of(plan_.steps[index]));
        if (read_back) {
            seams_.control.publish(*read_back, std::get<std::string>(subject), seams_.clock.now());
            HostView view;
            view.hypervisor = std::move(*read_back);
            known_[subject] = {
                std::make_shared<HostView>(std::move(view)), seams_.clock.steady_now(), {}};
            return;
        }
        for (auto later = index + 1; later < plan_.steps.size(); ++later)
            if (subject_of(plan_.steps[later]) == subject) return;
        ends_[subject] = std::async(std::launch::async | std::launch::deferred,
                                    [this, subject] { return observe(seams_, subject); });
    }
    // Publishes what the operation left before it is marked as ended, so a client that queries
    // afterwards gets it. A part that can't be observed stays published as it was, with its time.
    // Returns the PFs that were observed.
    KernelView end() {
        auto const span = timed(SpanKind::observe, "what is left");
        KernelView left;
        for (auto& [subject, observed] : ends_)
            if (auto view = observed.get()) left.pfs.merge(view->kernel.pfs);
        return left;
    }

  private:
    struct Part {
        std::shared_ptr<HostView const> view;
        Deadline at{};
        std::set<Aspect> changed;  // since then
    };
    Seams const& seams_;
    Plan const& plan_;
    HostView const nothing_{};
    std::map<StepSubject, Part> known_;
    std::map<StepSubject, std::future<Result<HostView>>> ends_;
};

// Writes what is about to happen, and its undo, to the journal before it happens.
Result<JournalRecord> intend(Seams const& seams, Operation& operation, std::size_t index,
                             Step const& step, Parts& parts) {
    VFMGR_TRY(HostView const* const before, parts.before(step));
    operation.steps[index].state = StepState::intended;
    return write(
        seams, operation,
        {static_cast<std::uint32_t>(index), step, inverse(step, *before), StepState::intended});
}

// `stored`: the step's record, if the journal has it already.
Result<void> do_step(Seams const& seams, Operation& operation, std::size_t index, Step const& step,
                     Parts& parts, std::optional<JournalRecord> stored,
                     std::vector<JournalRecord>& records, ObservedOnTheWay& noted) {
    if (!stored) {
        VFMGR_TRY(stored, intend(seams, operation, index, step, parts));
    }
    records.push_back(std::move(*stored));
    auto observed = perform(seams, step);
    if (!observed) {
        operation.steps[index].state = StepState::failed;
        return fail(observed.error());
    }
    if (as<ResetVf>(step)) {
        noted.reset_done_at = seams.clock.now();
        noted.counters = observed->counters;
    }
    for (auto const& back : records.back().undo)
        if (auto const* const detach = as<DetachExternal>(back); detach && detach->owner)
            noted.node_owners[detach->vf] = *detach->owner;
    operation.steps[index].state = StepState::done;
    operation.steps[index].remarks = std::move(observed->remarks);
    noted.vm = std::move(observed->vm);
    // That it is done is stored with the next step's intention, or with the end: recovery treats a
    // step that was only intended as one that may have happened.
    return {};
}

}  // namespace

bool is_cancelled(Seams const& seams, std::string const& operation) {
    return seams.cancellations && seams.cancellations->requested(operation);
}

Error cancelled() {
    return {Problem::cancelled, "the operation was cancelled", "begin it again if it is needed"};
}

std::vector<OperationStep> planned_steps(Plan const& plan) {
    std::vector<OperationStep> steps;
    for (auto const& step : plan.steps) steps.push_back({sentence(step), StepState::planned});
    return steps;
}

Result<KernelView> observe_kernel(Seams const& seams, KernelScope const& scope) {
    auto const span = timed(SpanKind::observe, scope ? to_string(*scope) : "all PFs");
    auto const began = seams.clock.now();
    VFMGR_TRY(KernelView observed, seams.kernel.observe(scope));
    seams.control.publish(observed, scope, {began, seams.clock.now()});
    return observed;
}

// Returns what this operation read itself, not the published view: a slower full observation that
// began earlier may have published older values meanwhile.
Result<HostView> observe_for(Seams const& seams, KernelScope const& scope) {
    // Both at once: libvirtd and the PF's worker are processes of their own. Without another thread
    // libvirt is asked when the kernel has answered.
    auto const began = seams.clock.now();
    auto asked = std::async(std::launch::async | std::launch::deferred,
                            [&] { return seams.hypervisor.observe(std::nullopt); });
    VFMGR_TRY(KernelView observed, observe_kernel(seams, scope));
    auto const span = timed(SpanKind::observe, "all VMs");
    auto hypervisor = asked.get();
    if (!hypervisor) {
        // If libvirt could not be queried, every VF counts as in use: the view is stale, and plans
        // that need to know refuse.
        HypervisorView unknown;
        unknown.stale = true;
        unknown.stale_reason = hypervisor.error().detail;
        unknown.observed_at = began;
        hypervisor = std::move(unknown);
    }
    seams.control.publish(*hypervisor, std::nullopt, seams.clock.now());
    HostView host = *seams.control.snapshot().host;
    host.hypervisor = std::move(*hypervisor);
    if (!scope) {
        host.kernel = std::move(observed);
        return host;
    }
    auto const* const one = std::get_if<PciAddress>(&*scope);
    if (one && !observed.pfs.contains(*one)) host.kernel.pfs.erase(*one);
    for (auto& [pci, pf] : observed.pfs) host.kernel.pfs.insert_or_assign(pci, std::move(pf));
    host.kernel.routes = std::move(observed.routes);
    if (observed.network) host.kernel.network = std::move(observed.network);
    if (observed.places) host.kernel.places = std::move(observed.places);
    return host;
}

std::vector<std::string> undo(Seams const& seams, Operation& operation,
                              std::vector<JournalRecord> records) {
    std::vector<std::string> residue;
    for (auto record = records.rbegin(); record != records.rend(); ++record) {
        if (record->state == StepState::undone) continue;
        bool all = true;
        for (auto const& step : record->undo) {
            auto const back = perform(seams, step, SpanKind::undo);
            if (back) continue;
            all = false;
            residue.push_back(could_not(step, back.error()));
        }
        if (!all) continue;
        record->state = StepState::undone;
        if (record->seq < operation.steps.size() &&
            operation.steps[record->seq].state != StepState::failed)
            operation.steps[record->seq].state = StepState::undone;
        // A store that can't be written must not block the undo on the host: the journal then still
        // has "intended", and recovery undoes once more, which is harmless.
        if (auto written = write_state(seams, operation, *record); !written) continue;
    }
    return residue;
}

std::vector<std::string> restore_values(Seams const& seams,
                                        std::vector<JournalRecord> const& records) {
    std::vector<std::string> residue;
    for (auto const& record : std::views::reverse(records))
        for (auto const& step : record.undo) {
            if (!as<SetPciValues>(step)) continue;
            if (auto const back = perform(seams, step, SpanKind::undo); !back)
                residue.push_back(could_not(step, back.error()));
        }
    return residue;
}

namespace {

// After a failure everything may be different, what is untouched too.
void publish_all(Seams const& seams, Plan const& plan) {
    std::set<StepSubject> subjects;
    for (auto const& step : plan.steps) subjects.insert(subject_of(step));
    for (auto const& subject : subjects) static_cast<void>(observe(seams, subject).has_value());
}

}  // namespace

std::optional<JournalRecord> intend_first(Operation& operation, Plan const& plan,
                                          HostView const& host, Batch& batch) {
    if (plan.steps.empty()) return std::nullopt;
    auto const& step = plan.steps.front();
    bool const of_host = !std::holds_alternative<std::monostate>(subject_of(step));
    if (!of_host || !has_part_of(host, step)) return std::nullopt;
    operation.steps.front().state = StepState::intended;
    JournalRecord record{0, step, inverse(step, host), StepState::intended};
    batch.save_records.push_back({operation.id, record});
    return record;
}

tl::expected<ObservedOnTheWay, Failure> execute(Seams const& seams, Operation& operation,
                                                Plan const& plan, OnFailure on_failure,
                                                std::optional<PlannedFrom> planned_from) {
    std::vector<JournalRecord> records;
    ObservedOnTheWay observed;
    std::optional<Failure> first;
    Parts parts(seams, plan, planned_from);
    auto stored = planned_from ? std::move(planned_from->first) : std::nullopt;
    auto const stops = [&] {
        return on_failure == OnFailure::undo && is_cancelled(seams, operation.id);
    };
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        bool const is_stopped = stops();
        if (is_stopped && stored) operation.steps[i].state = StepState::planned;
        auto done = is_stopped ? Result<void>(fail(cancelled()))
                               : do_step(seams, operation, i, plan.steps[i], parts,
                                         std::exchange(stored, {}), records, observed);
        parts.after(i, std::exchange(observed.vm, {}));
        if (done && stops()) done = fail(cancelled());
        if (done) continue;
        if (on_failure == OnFailure::go_on) {
            if (!first) first = Failure{done.error(), plan.steps[i], {}};
            first->residue.push_back(could_not(plan.steps[i], done.error()));
            continue;
        }
        Failure failure{done.error(), plan.steps[i], {}};
        // The failed step is undone too: it may be half done.
        if (on_failure == OnFailure::undo)
            failure.residue = undo(seams, operation, std::move(records));
        else if (records.size() == i + 1)
            failure.residue = restore_values(seams, {records.back()});
        static_cast<void>(parts.end());
        publish_all(seams, plan);
        return tl::unexpected(std::move(failure));
    }
    observed.left = parts.end();
    if (first) return tl::unexpected(std::move(*first));
    return observed;
}

}  // namespace vfmgr
