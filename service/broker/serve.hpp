// SPDX-License-Identifier: Apache-2.0
// The broker's end of its socket: performs what it admits, and answers what it observes. It runs as
// root, and trusts nothing that the front sends.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "api/os/descriptor.hpp"
#include "api/os/message_lines.hpp"
#include "service/broker/admit.hpp"
#include "service/broker/messages.hpp"
#include "service/broker/underway.hpp"

namespace vfmgr::broker {

// The front has at most this many requests underway; a healthy one has two for each operation.
inline constexpr std::size_t requests_max = 64;

// The records and their file, shared by all connections. Any thread.
class Keeper {
  public:
    // Reads the file; an absent one holds none. One that can't be read is an Error: without its
    // record, a VF that was not reset would pass for a new one.
    [[nodiscard]] static Result<std::unique_ptr<Keeper>> open(std::filesystem::path file);

    [[nodiscard]] Records now() const;
    // Replaces the records by what `change` returns, on the disk first. They stay as they were when
    // that fails. `change` is called under the lock.
    [[nodiscard]] Result<void> change(
        std::function<Result<Records>(Records const& now)> const& change);
    // Once in the broker's life: takes in what VMs have, before anything is done to them
    // (with_attached()). Returns what it observed of the VMs; nothing when it was done before.
    // Other callers wait for it. Tried again after an Error, and after adopt_again(): a PF's VFs
    // were made anew, which VMs' XML may name.
    [[nodiscard]] Result<std::optional<HypervisorView>> adopt(Kernel& kernel,
                                                              Hypervisor& hypervisor);
    void adopt_again();

  private:
    explicit Keeper(std::filesystem::path file) : file_(std::move(file)) {}

    std::filesystem::path const file_;
    mutable std::mutex mutex_;  // guards the records and the file
    Records records_;
    std::mutex adopting_;  // guards `adopted_`; held while the host is observed
    bool adopted_ = false;
};

// Facts as bundles: what Call has.
struct Collectors {
    std::function<std::string()> host;
    std::function<std::string()> owners;
};

// What the broker acts on, for all connections.
struct Seams {
    Kernel& kernel;
    Hypervisor& hypervisor;
    Collectors const& collectors;
    Keeper& keeper;
    StepsUnderway& underway;
};

// One connection of the front. run() has a thread; any thread may pass news on.
class Service {
  public:
    // `connection`: another number than those of earlier ones. `rules`: those of its time, so that
    // changes apply at a start of vfmgrd.
    Service(FileDescriptor socket, std::uint64_t connection, HostRules rules, Seams seams);
    Service(Service const&) = delete;
    Service& operator=(Service const&) = delete;

    // Greets, then answers until the front is gone or sends what is no request.
    void run(std::string const& version);
    // Returns at once; the same news that the front has not read yet are sent once.
    void pass_on(News news);

  private:
    void send_news();
    void send(std::string const& line);
    [[nodiscard]] bool begin(std::string const& line);
    [[nodiscard]] Answer answer(Request const& request);
    [[nodiscard]] Result<void> fill(Answer& answer, Request const& request);
    [[nodiscard]] Result<Observed> perform(Step const& step, Deadline deadline);
    [[nodiscard]] Result<HostView> observe_for(Step const& step);
    [[nodiscard]] Result<ObservedVms> observe_vms(std::optional<std::string> const& vm_uuid);
    [[nodiscard]] Result<void> await_earlier_fronts(Request const& request);

    FileDescriptor const socket_;
    std::uint64_t const connection_;
    HostRules const rules_;
    Seams const seams_;
    std::mutex sending_;  // keeps answers apart on the socket
    std::mutex mutex_;    // guards the members below
    std::condition_variable rung_;
    std::set<News> news_;
    bool over_ = false;
    RequestThreads threads_{requests_max};  // ends before what it uses
};

}  // namespace vfmgr::broker
