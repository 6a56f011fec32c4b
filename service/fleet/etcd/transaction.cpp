// SPDX-License-Identifier: Apache-2.0
// What of a transaction can be judged before it is sent.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/types/text.hpp"
#include "service/fleet/etcd/etcd.hpp"

namespace vfmgr::fleet {
namespace {

std::size_t bytes_of(Transaction const& transaction) {
    // More than protobuf adds to one key and value.
    constexpr std::size_t around = 64;
    std::size_t bytes = 0;
    for (auto const& one : transaction.compares)
        bytes += one.key.size() + one.value.size() + around;
    for (auto const& one : transaction.writes) {
        if (auto const* const put = std::get_if<Put>(&one))
            bytes += put->key.size() + put->value.size() + around;
        else
            bytes += std::get<Erase>(one).key.size() + around;
    }
    for (auto const& key : transaction.otherwise) bytes += key.size() + around;
    return bytes;
}

bool erases(Erase const& erase, std::string const& key) {
    return erase.match == Match::prefix ? key.starts_with(erase.key) : key == erase.key;
}

// etcd refuses two puts of a key, and a put of a key that is erased; two erasures it takes.
std::optional<std::string> written_twice(std::vector<Write> const& writes) {
    std::set<std::string> put;
    for (auto const& one : writes)
        if (auto const* const write = std::get_if<Put>(&one))
            if (!put.insert(write->key).second) return write->key;
    for (auto const& one : writes)
        if (auto const* const erase = std::get_if<Erase>(&one))
            for (auto const& key : put)
                if (erases(*erase, key)) return key;
    return std::nullopt;
}

}  // namespace

Compare absent(std::string key) {
    return {.key = std::move(key), .on = Compare::On::create_revision};
}

Compare present(std::string key) {
    return {
        .key = std::move(key), .on = Compare::On::create_revision, .is = Compare::Is::not_equal};
}

Compare unchanged(std::string key, Revision mod_revision) {
    return {.key = std::move(key), .on = Compare::On::mod_revision, .number = mod_revision};
}

Compare created_at(std::string key, Revision create_revision) {
    return {.key = std::move(key), .on = Compare::On::create_revision, .number = create_revision};
}

Result<void> check(Transaction const& transaction) {
    auto const most = std::max(
        {transaction.compares.size(), transaction.writes.size(), transaction.otherwise.size()});
    if (most > transaction_operations_max)
        return fail(Problem::limit_exceeded,
                    fmt::format("the change has {} operations on etcd, and {} may be in one "
                                "transaction",
                                most, transaction_operations_max),
                    "split the request into smaller ones");
    if (auto const bytes = bytes_of(transaction); bytes > request_bytes_max)
        return fail(Problem::limit_exceeded,
                    fmt::format("the change needs {} bytes in one transaction of etcd, which takes "
                                "{}",
                                bytes, request_bytes_max),
                    "split the request into smaller ones");
    if (auto const key = written_twice(transaction.writes))
        return fail(Problem::internal,
                    fmt::format("a transaction would write the key {} twice", quoted(*key)),
                    "report this with the daemon's log");
    return {};
}

}  // namespace vfmgr::fleet
