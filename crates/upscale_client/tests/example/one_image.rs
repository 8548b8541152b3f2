//! Orders one image and saves the result: what the console shows beside an order.

use std::env;

use upscale_client::{Client, Order};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let key = env::var("UPSCALE_API_KEY")?;
    let client = Client::new("https://api.example.com", &key)?;
    let order = Order::new("https://images.example.com/photo.jpg")
        .scale(4)
        .face_enhance(true);
    let task = client.upscales().run(&order).await?;
    client.upscales().download_to(&task, "result.png").await?;
    Ok(())
}
