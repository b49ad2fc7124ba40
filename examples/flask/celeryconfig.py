"""The broker: a folder, so that the example needs no server. Yours is Redis or RabbitMQ."""

from pathlib import Path

folder = Path(__file__).resolve().parent / "broker"
(folder / "control").mkdir(parents=True, exist_ok=True)
broker_url = "filesystem://"
broker_transport_options = {
    "data_folder_in": str(folder),
    "data_folder_out": str(folder),
    "control_folder": str(folder / "control"),
    "polling_interval": 0.05,
}
