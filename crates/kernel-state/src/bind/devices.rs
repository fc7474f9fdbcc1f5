//! Events of disks, network interfaces and pages.

use event::{EventClass, FieldId};

/// A device's event.
#[derive(Clone, Copy, Debug)]
pub enum Device {
    BlockRemap {
        dev: FieldId,
        sector: FieldId,
        old_dev: FieldId,
        old_sector: FieldId,
    },
    BlockMerge {
        dev: FieldId,
        sector: FieldId,
    },
    BlockIssue {
        dev: FieldId,
        sector: FieldId,
        sectors: FieldId,
        tid: FieldId,
        rwbs: FieldId,
    },
    BlockComplete {
        dev: FieldId,
        sector: FieldId,
        sectors: FieldId,
    },
    Sent {
        name: FieldId,
        len: FieldId,
    },
    Received {
        name: FieldId,
        len: FieldId,
    },
    PageAlloc,
    PageFree,
}

pub(super) fn bind(class: &EventClass) -> Option<Device> {
    let field = |field: &str| class.field(field);
    Some(match class.kernel_name() {
        "block_bio_remap" => Device::BlockRemap {
            dev: field("dev")?,
            sector: field("sector")?,
            old_dev: field("old_dev")?,
            old_sector: field("old_sector")?,
        },
        "block_bio_backmerge" => Device::BlockMerge {
            dev: field("dev")?,
            sector: field("sector")?,
        },
        "block_rq_issue" => Device::BlockIssue {
            dev: field("dev")?,
            sector: field("sector")?,
            sectors: field("nr_sector")?,
            tid: field("tid")?,
            rwbs: field("rwbs")?,
        },
        "block_rq_complete" => Device::BlockComplete {
            dev: field("dev")?,
            sector: field("sector")?,
            sectors: field("nr_sector")?,
        },
        "net_dev_xmit" => Device::Sent {
            name: field("name")?,
            len: field("len")?,
        },
        "netif_receive_skb" | "net_if_receive_skb" => Device::Received {
            name: field("name")?,
            len: field("len")?,
        },
        "mm_page_alloc" | "kmem_mm_page_alloc" => Device::PageAlloc,
        "mm_page_free" | "kmem_mm_page_free" => Device::PageFree,
        _ => return None,
    })
}
