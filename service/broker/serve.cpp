// SPDX-License-Identifier: Apache-2.0
#include "service/broker/serve.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <thread>
#include <utility>

#include "api/os/file.hpp"

namespace vfmgr::broker {
namespace {

// The front may ask for less time than the longest step takes, but not for more.
Deadline deadline_of(Request const& request) {
    constexpr std::chrono::milliseconds longest = longest_kernel_step;
    auto const asked = std::min<std::uint64_t>(request.milliseconds, longest.count());
    return std::chrono::steady_clock::now() + std::chrono::milliseconds(asked);
}

KernelScope scope_of(Request const& request) {
    if (request.host_network) return HostNetwork{};
    return request.pf ? KernelScope(*request.pf) : std::nullopt;
}

Error busy() {
    return {Problem::limit_exceeded,
            fmt::format("the broker has {} requests underway", requests_max),
            "try again when some have ended"};
}

}  // namespace

Result<std::unique_ptr<Keeper>> Keeper::open(std::filesystem::path file) {
    std::unique_ptr<Keeper> keeper(new Keeper(std::move(file)));
    auto const text = read_file(keeper->file_);
    if (!text && errno == ENOENT) return keeper;
    auto records = text ? parse_records(*text)
                        : fail(Problem::unavailable, "can't be read: " + errno_name(errno), "");
    if (!records)
        return fail(Problem::unavailable,
                    fmt::format("{}: {}", keeper->file_.string(), records.error().detail),
                    "restore it from a backup; or end all attachments, set the number of VFs of "
                    "each PF to 0, and remove the file");
    keeper->records_ = std::move(*records);
    return keeper;
}

Records Keeper::now() const {
    std::lock_guard const lock(mutex_);
    return records_;
}

Result<void> Keeper::change(std::function<Result<Records>(Records const& now)> const& change) {
    std::lock_guard const lock(mutex_);
    VFMGR_TRY(auto changed, change(records_));
    if (changed != records_)
        if (auto const written = replace_file(file_, to_text(changed), 0600); !written)
            return fail(Problem::unavailable,
                        fmt::format("{} can't be written: {}", file_.string(),
                                    detail_with_causes(written.error())),
                        "make room on its disk");
    records_ = std::move(changed);
    return {};
}

Result<std::optional<HypervisorView>> Keeper::adopt(Kernel& kernel, Hypervisor& hypervisor) {
    std::lock_guard const lock(adopting_);
    if (adopted_) return std::nullopt;
    auto const began = now();
    HostView host;
    VFMGR_TRY(host.hypervisor, hypervisor.observe(std::nullopt));
    if (has_unrecorded(host.hypervisor, began)) {
        VFMGR_TRY(host.kernel, kernel.observe(std::nullopt));
        VFMGR_CHECK(change([&](Records const& now) -> Result<Records> {
            return with_attached(now, began, host);
        }));
    }
    adopted_ = true;
    return std::move(host.hypervisor);
}

void Keeper::adopt_again() {
    std::lock_guard const lock(adopting_);
    adopted_ = false;
}

Service::Service(FileDescriptor socket, std::uint64_t connection, HostRules rules, Seams seams)
    : socket_(std::move(socket)),
      connection_(connection),
      rules_(std::move(rules)),
      seams_(seams) {}

void Service::run(std::string const& version) {
    send(to_line(Greeting{protocol, version}));
    std::thread news([this] { send_news(); });
    static_cast<void>(
        each_line(socket_.get(), [this](std::string const& line) { return begin(line); }));
    ::shutdown(socket_.get(), SHUT_RDWR);  // who still sends to a front that does not read, ends
    {
        std::lock_guard const lock(mutex_);
        over_ = true;
    }
    rung_.notify_all();
    news.join();
}

void Service::pass_on(News news) {
    {
        std::lock_guard const lock(mutex_);
        news_.insert(news);
    }
    rung_.notify_all();
}

void Service::send_news() {
    std::unique_lock lock(mutex_);
    while (true) {
        rung_.wait(lock, [this] { return !news_.empty() || over_; });
        if (over_) return;
        auto const all = std::exchange(news_, {});
        lock.unlock();
        for (auto const news : all) send(to_line(Answer{0, news}));
        lock.lock();
    }
}

void Service::send(std::string const& line) {
    std::lock_guard const lock(sending_);
    send_all(socket_.get(), line);
}

bool Service::begin(std::string const& line) {
    auto request = parse_request(line);
    if (!request) return false;
    Answer refusal{request->id};
    refusal.error = busy();
    bool const begun = threads_.begin(
        {}, [this, request = std::move(*request)] { send(to_line(answer(request))); });
    if (!begun) send(to_line(refusal));
    return true;
}

Answer Service::answer(Request const& request) {
    Answer answer{request.id};
    if (auto filled = fill(answer, request); !filled) answer.error = std::move(filled.error());
    return answer;
}

// The wait does not count against the request's own time.
Result<void> Service::await_earlier_fronts(Request const& request) {
    auto const subject = subject_of(request);
    auto const deadline = std::chrono::steady_clock::now() + longest_kernel_step;
    if (seams_.underway.await_others(subject, connection_, deadline)) return {};
    return fail(Problem::unavailable, "a step that an earlier vfmgrd asked for has not ended",
                "see what it waits for: journalctl -u vfmgr-broker; journalctl -k");
}

Result<void> Service::fill(Answer& answer, Request const& request) {
    VFMGR_CHECK(await_earlier_fronts(request));
    auto const& [kernel, hypervisor, collectors, keeper, underway] = seams_;
    switch (request.call) {
        case Call::observe: {
            VFMGR_TRY(answer.view, kernel.observe(scope_of(request)));
            return {};
        }
        case Call::observe_vms: {
            VFMGR_TRY(answer.vms, observe_vms(request.vm_uuid));
            return {};
        }
        case Call::perform: {
            VFMGR_TRY(auto observed, perform(*request.step, deadline_of(request)));
            answer.remarks = std::move(observed.remarks);
            answer.counters = observed.counters;
            if (observed.vm) answer.vms = observed_vms(std::move(*observed.vm));
            return {};
        }
        case Call::read_firmware: {
            VFMGR_TRY(answer.firmware, kernel.read_firmware(request.pf));
            return {};
        }
        case Call::read_traffic: {
            VFMGR_TRY(answer.traffic, kernel.read_traffic(request.pf));
            return {};
        }
        case Call::settle:
            return hypervisor.settle(*request.vm_uuid, deadline_of(request));
        case Call::collect_host:
            answer.facts = collectors.host();
            return {};
        case Call::collect_owners:
            answer.facts = collectors.owners();
            return {};
    }
    return {};
}

// Between the check and the intention, which is on the disk before anything is touched, no other
// step changes the records.
Result<Observed> Service::perform(Step const& step, Deadline deadline) {
    auto const& [kernel, hypervisor, collectors, keeper, underway] = seams_;
    auto const* const of_vm = std::get_if<HypervisorStep>(&step);
    if (of_vm) VFMGR_CHECK(keeper.adopt(kernel, hypervisor));
    VFMGR_TRY(auto const host, observe_for(step));
    Records began;
    VFMGR_CHECK(keeper.change([&](Records const& now) -> Result<Records> {
        VFMGR_CHECK(admit(rules_, now, host, step));
        return began = recorded_before(now, host, step);
    }));
    auto const going_on = underway.begin(vfmgr::subject_of(step), connection_);
    auto observed = of_vm ? hypervisor.perform(*of_vm, deadline)
                          : kernel.perform(std::get<KernelStep>(step), deadline);
    if (observed)
        VFMGR_CHECK(keeper.change([&](Records const& now) -> Result<Records> {
            return recorded_after(now, began, step);
        }));
    if (as<SetNumVfs>(step)) keeper.adopt_again();
    return observed;
}

// At boot nobody asks for VMs before libvirt may start: vfmgr-restore.service is about PFs alone.
Result<ObservedVms> Service::observe_vms(std::optional<std::string> const& vm_uuid) {
    auto const& [kernel, hypervisor, collectors, keeper, underway] = seams_;
    VFMGR_TRY(auto adopted, keeper.adopt(kernel, hypervisor));
    if (adopted && !vm_uuid) return observed_vms(std::move(*adopted));
    VFMGR_TRY(auto view, hypervisor.observe(vm_uuid));
    return observed_vms(std::move(view));
}

Result<HostView> Service::observe_for(Step const& step) {
    auto const& [kernel, hypervisor, collectors, keeper, underway] = seams_;
    HostView host;
    auto const sight = sight_for(keeper.now(), step);
    if (sight == Sight::nothing) return host;
    auto const pf = pf_of(step).value();  // of every step that needs sight
    auto const* const number = as<SetNumVfs>(step);
    // An attach waits for the slower of the two, not for their sum.
    std::future<Result<HypervisorView>> vms;
    if (sight == Sight::pf_and_vms && number == nullptr)
        vms = std::async(std::launch::async, [&] { return hypervisor.observe(std::nullopt); });
    VFMGR_TRY(host.kernel, kernel.observe(pf));
    VFMGR_CHECK(readable_pf(host, pf));
    if (vms.valid()) {
        VFMGR_TRY(host.hypervisor, vms.get());
        return host;
    }
    // At boot there are none yet, and libvirt waits until they are made.
    auto const& vfs = host.kernel.pfs.at(pf).vfs;
    bool const removes = number && !vfs.empty() && vfs.size() != number->count;
    if (sight == Sight::pf_and_vms && removes) {
        VFMGR_TRY(host.hypervisor, hypervisor.observe(std::nullopt));
    }
    return host;
}

}  // namespace vfmgr::broker
