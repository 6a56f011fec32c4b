// SPDX-License-Identifier: Apache-2.0
#include "service/metrics/load.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <filesystem>

#include "service/metrics/process.hpp"

namespace vfmgr {
namespace {

void add_guests(std::optional<guestd::Load> const& load, MetricFamilies& all) {
    auto up = Family::gauge("vfmgr_guestd_up", "Whether vfmgr-guestd answers, which serves VMs.");
    up.add({}, load ? 1 : 0);
    move_all(all, {&up});
    if (!load) return;
    auto waiting = Family::gauge("vfmgr_guest_plane_requests_waiting",
                                 "Requests of VMs that wait for a thread.");
    auto polls =
        Family::gauge("vfmgr_guest_plane_long_polls", "VMs' requests that wait for a change.");
    auto refused =
        Family::counter("vfmgr_guest_plane_refused_total", "Requests of VMs that sent too many.");
    waiting.add({}, load->plane.requests_waiting);
    polls.add({}, load->plane.long_polls);
    refused.add({}, load->plane.refused);
    auto sessions = Family::gauge("vfmgr_responder_sessions",
                                  "Verifications that this host's responder answers now.");
    auto most = Family::gauge("vfmgr_responder_sessions_max", "How many it answers at a time.");
    auto streams = Family::gauge("vfmgr_responder_streams",
                                 "Open streams of queue pairs of these verifications.");
    auto turns = Family::gauge("vfmgr_responder_waiting",
                               "Verifications and streams that wait for their turn.");
    sessions.add({}, load->responder.sessions);
    most.add({}, load->responder.sessions_max);
    streams.add({}, load->responder.streams);
    turns.add({}, load->responder.waiting);
    move_all(all, {&waiting, &polls, &refused, &sessions, &most, &streams, &turns});
}

void add_store(StoreSize const& store, MetricFamilies& all) {
    auto used = Family::gauge("vfmgr_store_size_bytes", "Size of vfmgrd's store with its log.");
    auto left = Family::gauge("vfmgr_store_free_bytes", "What is free in the store's file system.");
    if (store.used) used.add({}, *store.used);
    if (store.free) left.add({}, *store.free);
    move_all(all, {&used, &left});
}

}  // namespace

StoreSize store_size(std::string const& store_file) {
    StoreSize size;
    for (auto const* const part : {"", "-wal"}) {
        std::error_code error;
        auto const bytes = std::filesystem::file_size(store_file + part, error);
        if (!error) size.used = size.used.value_or(0) + bytes;
    }
    struct statvfs there{};
    if (::statvfs(store_file.c_str(), &there) == 0)
        size.free = std::uint64_t{there.f_bavail} * there.f_frsize;
    return size;
}

MetricFamilies load_metrics(ServiceLoad const& load) {
    MetricFamilies all;
    add_guests(load.guests, all);
    add_store(load.store, all);
    add_process_metrics(all);
    return all;
}

}  // namespace vfmgr
