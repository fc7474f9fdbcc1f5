//! One file of a table, in either format.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, SchemaRef};
use ctf::writer::write_error;
use event::{Error, ErrorKind, Result};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::column::Column;

/// Rows that are collected before they are written.
const BATCH_ROWS: usize = 4096;

/// The two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableFormat {
    Parquet,
    Arrow,
}

impl TableFormat {
    pub fn extension(self) -> &'static str {
        match self {
            TableFormat::Parquet => "parquet",
            TableFormat::Arrow => "arrow",
        }
    }
}

enum Writer {
    Parquet(Box<ArrowWriter<File>>),
    Arrow(Box<FileWriter<BufWriter<File>>>),
}

/// A file that is being written.
pub(super) struct TableFile {
    path: PathBuf,
    schema: SchemaRef,
    writer: Option<Writer>,
    rows: usize,
}

impl TableFile {
    pub fn create(path: &Path, schema: SchemaRef, format: TableFormat) -> Result<TableFile> {
        let file = File::create_new(path).map_err(|cause| write_error(path, cause))?;
        let writer = match format {
            TableFormat::Parquet => {
                let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
                let properties = Some(properties.build());
                ArrowWriter::try_new(file, schema.clone(), properties)
                    .map(|writer| Writer::Parquet(Box::new(writer)))
                    .map_err(|cause| failed(path, cause.into()))
            }
            TableFormat::Arrow => FileWriter::try_new(BufWriter::new(file), &schema)
                .map(|writer| Writer::Arrow(Box::new(writer)))
                .map_err(|cause| failed(path, cause)),
        };
        Ok(TableFile {
            path: path.to_owned(),
            schema,
            writer: Some(writer?),
            rows: 0,
        })
    }

    /// Counts a row; writes the columns when they are many.
    pub fn end_row(&mut self, columns: &mut [Column]) -> Result<()> {
        self.rows += 1;
        match self.rows < BATCH_ROWS {
            true => Ok(()),
            false => self.write(columns),
        }
    }

    fn write(&mut self, columns: &mut [Column]) -> Result<()> {
        self.rows = 0;
        let arrays = columns.iter_mut().map(Column::take).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), arrays);
        let written = batch.and_then(|batch| match &mut self.writer {
            Some(Writer::Parquet(writer)) => writer.write(&batch).map_err(ArrowError::from),
            Some(Writer::Arrow(writer)) => writer.write(&batch),
            None => Ok(()),
        });
        written.map_err(|cause| failed(&self.path, cause))
    }

    /// Writes what is left and the file's end.
    pub fn finish(&mut self, columns: &mut [Column]) -> Result<()> {
        self.write(columns)?;
        let finished = match self.writer.take() {
            Some(Writer::Parquet(writer)) => writer.close().map(drop).map_err(ArrowError::from),
            Some(Writer::Arrow(mut writer)) => writer.finish(),
            None => Ok(()),
        };
        finished.map_err(|cause| failed(&self.path, cause))
    }
}

/// The operating system's own error, where one lies below.
fn failed(path: &Path, cause: ArrowError) -> Error {
    let mut below: Option<&(dyn std::error::Error + 'static)> = Some(&cause);
    while let Some(error) = below {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            let io = io.raw_os_error().map_or_else(
                || std::io::Error::from(io.kind()),
                std::io::Error::from_raw_os_error,
            );
            return write_error(path, io);
        }
        below = error.source();
    }
    let what = format!("cannot write {}", path.display());
    Error::new(ErrorKind::Io, what).found(cause.to_string())
}
